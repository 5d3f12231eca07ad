import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";
import { jobs } from "@/api/queries";
import { Button } from "@/components/ui/button";
import { Facts } from "@/components/ui/facts";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { factsOf } from "@/lib/facts";
import { t } from "@/lib/language";

/** Does every index hold exactly what the catalog says? */
export function FsckSection() {
  const client = useQueryClient();
  const list = useQuery(jobs);
  // Jobs are listed newest first, and a check's report is its result.
  const last = list.data?.jobs.find((job) => job.kind === "fsck" && job.state === "done")?.result ?? null;
  const run = useMutation({
    mutationFn: () => call("POST", "api/v1/fsck"),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ["jobs"] });
    },
  });
  return (
    <Section
      title={t("Consistency")}
      aside={
        <Button icon="check" disabled={run.isPending} onClick={() => run.mutate()}>
          {run.isPending ? t("Checking") : t("Check now")}
        </Button>
      }
    >
      {list.isPending && <Skeleton lines={2} />}
      {list.isSuccess && last === null && <p className="text-sm text-muted">{t("No check has been run yet.")}</p>}
      {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {run.isError && <Failure error={run.error} what={t("That did not work.")} />}
      {last !== null && <Facts facts={factsOf(last)} />}
    </Section>
  );
}
