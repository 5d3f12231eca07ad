import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "@/api/http";
import { finished, job } from "@/api/queries";
import type { JobRecord } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Meter } from "@/components/ui/meter";
import { Section } from "@/components/ui/section";
import { Failure } from "@/components/ui/states";
import { count, seconds } from "@/lib/format";

/** Start an evaluation of the indexed documents and watch it. */
export function RunPanel() {
  const client = useQueryClient();
  const start = useMutation({ mutationFn: () => call<JobRecord>("POST", "api/v1/evaluations", {}) });
  const id = start.data?.id ?? null;
  const watched = useQuery({ ...job(id ?? ""), enabled: id !== null });
  const over = finished(watched.data);
  useEffect(() => {
    if (over) void client.invalidateQueries({ queryKey: ["evaluations"] });
  }, [over, client]);
  const running = watched.data !== undefined && !over;
  return (
    <Section
      title="Run"
      aside={
        <Button icon="play" disabled={start.isPending || running} onClick={() => start.mutate()}>
          Start a run
        </Button>
      }
    >
      <p className="text-sm text-muted">Asks the judged questions of this project under every arm and compares each with the baseline.</p>
      {start.isError && <Failure error={start.error} what="The run did not start." />}
      {running && (
        <div className="mt-2">
          <Meter value={watched.data.total === null || watched.data.total === 0 ? null : watched.data.done / watched.data.total} label="Progress of the run" />
          <p className="mt-1 text-xs text-muted tabular-nums">
            {count(watched.data.done)}
            {watched.data.total !== null && ` of ${count(watched.data.total)}`} {watched.data.unit}
            {watched.data.eta_s !== null && ` · about ${seconds(watched.data.eta_s)} left`}
          </p>
        </div>
      )}
      {over && watched.data?.state === "failed" && (
        <Banner tone="bad" className="mt-2">
          {watched.data.errors[0] ?? "The run failed without a reason."}
        </Banner>
      )}
      {over && watched.data?.state === "done" && (
        <Banner tone="good" className="mt-2">
          The run is done; its report is below.
        </Banner>
      )}
    </Section>
  );
}
