import { useQuery } from "@tanstack/react-query";
import { job } from "@/api/queries";
import { IconButton } from "@/components/ui/button";
import { Meter } from "@/components/ui/meter";
import { moving, type Upload, useUploads } from "@/hooks/use-uploads";
import { sentence } from "@/lib/format";
import { t } from "@/lib/language";
import { problemWords } from "@/lib/server-words";

/** Rows shown at most; a folder of thousands is summed up instead. */
const SHOWN = 40;

/** What is on its way into the library: progress, receipt, or why not, file by file. */
export function UploadList() {
  const { uploads, retry, stop, clear } = useUploads();
  if (uploads.length === 0) return null;
  const active = uploads.filter(moving);
  const failed = uploads.filter((u) => u.state === "failed");
  // Failures first, then what moves, then what is done: the list is cut at the end.
  const ordered = [...failed, ...active, ...uploads.filter((u) => u.state === "done" || u.state === "stopped")];
  const added = uploads.filter((u) => u.state === "done").length;
  const settled = uploads.length - active.length;
  return (
    <section aria-label={t("Uploads")} className="flex max-h-[30%] min-h-24 flex-col border-b border-line px-3 py-2">
      <div className="flex items-center justify-between gap-2 text-2xs text-muted">
        <span role="status">
          {active.length > 0 ? t("{done} of {n} files", { done: settled, n: uploads.length }) : t("{n} files added", { n: added })}
          {failed.length > 0 && <span className="text-bad">, {t("{n} failed", { n: failed.length })}</span>}
        </span>
        {settled > 0 && (
          <button type="button" onClick={clear} className="underline underline-offset-2 hover:text-ink">
            {t("Clear")}
          </button>
        )}
      </div>
      {active.length > 0 && uploads.length > 1 && <Meter value={settled / uploads.length} label={t("Uploads")} className="mt-1" />}
      <ul className="mt-1 min-h-0 overflow-y-auto">
        {ordered.slice(0, SHOWN).map((upload) => (
          <UploadRow key={upload.id} upload={upload} onRetry={() => retry(upload.id)} onStop={() => stop(upload.id)} />
        ))}
        {ordered.length > SHOWN && <li className="py-1 text-2xs text-muted">{t("and {n} more", { n: ordered.length - SHOWN })}</li>}
      </ul>
    </section>
  );
}

function UploadRow({ upload, onRetry, onStop }: { upload: Upload; onRetry: () => void; onStop: () => void }) {
  const inWork = moving(upload);
  return (
    <li className="flex items-start gap-1.5 py-1">
      <div className="min-w-0 flex-1">
        <p className="truncate text-xs" title={upload.name}>
          {upload.name}
        </p>
        {inWork && <Meter value={upload.state === "reading" ? null : upload.sent} label={t("Upload of {name}", { name: upload.name })} className="my-1" />}
        <p className={upload.state === "failed" ? "text-2xs [overflow-wrap:anywhere] text-bad" : "text-2xs text-muted"} title={upload.reason ?? undefined}>{describe(upload)}</p>
        {upload.state === "done" && upload.outcome?.reason != null && (
          <p className="text-2xs [overflow-wrap:anywhere] text-warn">{sentence(upload.outcome.reason)}</p>
        )}
        {upload.state === "done" && upload.jobId !== null && <VectorProgress jobId={upload.jobId} />}
      </div>
      {inWork && <IconButton icon="close" label={t("Stop {name}", { name: upload.name })} onClick={onStop} className="size-6" />}
      {((upload.state === "failed" && upload.retryable) || upload.state === "stopped") && (
        <IconButton icon="retry" label={t("Try {name} again", { name: upload.name })} onClick={onRetry} className="size-6" />
      )}
    </li>
  );
}

function describe(upload: Upload): string {
  switch (upload.state) {
    case "waiting":
      return t("Waiting");
    case "sending":
      return t("Sending");
    case "accepted":
      return upload.reason === null ? t("With the server, which reads it in its turn") : sentence(upload.reason);
    case "reading":
      return t("Reading and indexing");
    case "stopped":
      return t("Stopped");
    case "failed":
      return sentence(problemWords(upload.outcome?.code ?? "", upload.reason ?? t("It failed without a reason")));
    case "done":
      return receiptLine(upload);
  }
}

/** The receipt: what was read, and that no character was lost. */
function receiptLine(upload: Upload): string {
  const { outcome } = upload;
  if (outcome?.status === "unchanged") return t("Already here, unchanged");
  const receipt = outcome?.receipt ?? null;
  const verb = outcome?.status === "replaced" ? t("Replaced") : t("Indexed");
  if (receipt === null) return verb;
  const parts = [receipt.pages > 0 ? t("{n} pages", { n: receipt.pages }) : "", t("{n} characters", { n: receipt.characters }), t("{n} passages", { n: receipt.chunks })];
  const same = outcome?.duplicate_of == null ? "" : ` ${t("Same bytes as another document.")}`;
  return `${verb}: ${parts.filter(Boolean).join(", ")}.${same}`;
}

/** Search by meaning follows the text; shown until it is ready. */
function VectorProgress({ jobId }: { jobId: string }) {
  const { data } = useQuery(job(jobId));
  if (data === undefined || (data.state !== "running" && data.state !== "queued")) return null;
  return <Meter value={data.total === null || data.total === 0 ? null : data.done / data.total} label={t("Preparing search by meaning")} className="mt-1" />;
}
