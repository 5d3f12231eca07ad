import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "@/api/http";
import { finished, job, jobs } from "@/api/queries";
import type { JobRecord } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Meter } from "@/components/ui/meter";
import { Failure } from "@/components/ui/states";
import { ago, progressWords, sentence } from "@/lib/format";
import { locale, t } from "@/lib/language";

/** What a job of kind `zotero` counted. */
interface Report {
  added: number;
  replaced: number;
  removed: number;
  unchanged: number;
  kept: number;
  failures: number;
  failed: readonly { file: string; reason: string }[];
}

/** Makes My documents equal Zotero: a button, how far it is, and what the last time changed. */
export function ZoteroSync() {
  const [open, setOpen] = useState(false);
  const client = useQueryClient();
  const start = useMutation({
    mutationFn: (allowEmpty: boolean) => call<JobRecord>("POST", "api/v1/sync/zotero", { library: "papers", allow_empty: allowEmpty }),
  });
  // A key of one library sees its own jobs, and no list of them.
  const asked = start.data?.id;
  const own = useQuery({ ...job(asked ?? ""), enabled: asked !== undefined });
  const list = useQuery({ ...jobs, enabled: open && asked === undefined });
  const last = own.data ?? list.data?.jobs.find((one) => one.kind === "zotero");
  const running = last !== undefined && !finished(last);
  const ended = last !== undefined && finished(last) ? last.id : null;
  useEffect(() => {
    if (ended === null) return;
    for (const key of ["documents", "libraries", "folders", "tags", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
  }, [ended, client]);
  const busy = running || start.isPending;
  return (
    <details className="text-xs text-muted" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="hover:text-ink">{t("Follow Zotero")}</summary>
      <div role="group" aria-label={t("Follow Zotero")} className="mt-1.5 flex flex-col gap-1.5">
        <p>{t("Brings files, annotations and notes from Zotero into My documents, and takes away what is gone there. Zotero is only read.")}</p>
        <Button className="self-start" disabled={busy} onClick={() => start.mutate(false)}>
          {busy ? t("Syncing with Zotero") : t("Sync with Zotero")}
        </Button>
        {running && (
          <>
            <p className="tabular-nums">{progressWords(last)}</p>
            <Meter value={last.total === null || last.total === 0 ? null : last.done / last.total} label={t("Progress of {job}", { job: t("Sync with Zotero") })} />
          </>
        )}
        {start.isError && <Failure error={start.error} what={t("It did not start.")} />}
        {!busy && last !== undefined && <Ended job={last} onRemove={() => start.mutate(true)} />}
      </div>
    </details>
  );
}

function Ended({ job, onRemove }: { job: JobRecord; onRemove: () => void }) {
  if (job.state === "cancelled") return <p>{t("The last sync was cancelled.")}</p>;
  if (job.state === "failed") return <Banner tone="bad">{whyNot(job)}</Banner>;
  const { added, replaced, removed, unchanged, kept, failures, failed } = job.result as unknown as Report;
  const counts = [t("{n} added", { n: added }), t("{n} changed", { n: replaced }), t("{n} removed", { n: removed }), t("{n} unchanged", { n: unchanged })];
  return (
    <>
      <Banner tone={failures + kept > 0 ? "warn" : "good"}>
        {counts.join(", ")}
        {failures > 0 && `, ${t("{n} failed", { n: failures })}`} · {ago(job.updated_at)}
      </Banner>
      {kept > 0 && (
        <Banner tone="warn" action={<Button look="quiet" onClick={onRemove}>{t("Remove them")}</Button>}>
          {t("{n} documents are gone from Zotero and kept here: that is more than half of what came from there.", { n: kept })}
        </Banner>
      )}
      {failed.length > 0 && (
        <ul className="flex max-h-40 flex-col gap-1 overflow-y-auto">
          {failed.map(({ file, reason }) => (
            <li key={file} className="[overflow-wrap:anywhere] text-bad">
              {sentence(reason)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Why a sync failed; the server's words say what to tick in Zotero. */
function whyNot({ result }: JobRecord): string {
  const error = result?.["error"] as { code: string; detail: string } | undefined;
  if (error === undefined) return t("That did not work.");
  return error.code === "provider_unreachable" && locale() !== "en" ? t("Zotero does not answer. Start it on the machine of the server, or try again later.") : sentence(error.detail);
}
