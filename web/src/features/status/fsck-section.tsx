import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError, call } from "@/api/http";
import { fsck } from "@/api/queries";
import { Button } from "@/components/ui/button";
import { Facts } from "@/components/ui/facts";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { factsOf } from "@/lib/facts";

/** Does every projection hold exactly what the catalog says? */
export function FsckSection() {
  const client = useQueryClient();
  const last = useQuery(fsck);
  const never = last.error instanceof ApiError && last.error.problem.code === "not_found";
  const run = useMutation({
    mutationFn: () => call("POST", "api/v1/fsck"),
    onSettled: () => {
      for (const key of ["fsck", "jobs"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  return (
    <Section
      title="Consistency"
      aside={
        <Button icon="check" disabled={run.isPending} onClick={() => run.mutate()}>
          {run.isPending ? "Checking" : "Check now"}
        </Button>
      }
    >
      {last.isPending && <Skeleton lines={2} />}
      {never && <p className="text-sm text-muted">No check has been run yet.</p>}
      {last.isError && !never && last.data === undefined && <Failure error={last.error} onRetry={() => void last.refetch()} />}
      {run.isError && <Failure error={run.error} what="The check did not run." />}
      {last.data !== undefined && <Facts facts={factsOf(last.data)} />}
    </Section>
  );
}
