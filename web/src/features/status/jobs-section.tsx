import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";
import { finished, jobs } from "@/api/queries";
import type { JobRecord } from "@/api/types";
import { IconButton } from "@/components/ui/button";
import { Meter } from "@/components/ui/meter";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Tag } from "@/components/ui/tag";
import { ago, count, progressWords } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const SHOWN = 12;
/** Jobs of a kind that end within this time of each other are of one folder, in milliseconds. */
const BATCH_MS = 600_000;
const TONES = { queued: "plain", running: "info", paused: "warn", done: "good", failed: "bad", cancelled: "plain" } as const;

const STATES: Record<JobRecord["state"], Message> = { queued: "queued", running: "running", paused: "paused", done: "done", failed: "failed", cancelled: "cancelled" };

/** Kinds of jobs by name; one that is not here shows as the server calls it. */
const KINDS: Record<string, Message> = {
  arxiv: "Paper from arXiv",
  backfill: "Vectors of new passages",
  backup: "Backup",
  bulk: "Bulk import",
  bulk_plan: "Plan of a bulk import",
  calibrate: "Calibration",
  evaluation: "Evaluation",
  export: "Export",
  fetch: "Page of the web",
  fsck: "Check of the store",
  import: "Import",
  ingest: "Upload",
  model_test: "Test of a model",
  ocr: "Text in pictures",
  pull: "Fetching a model",
  purge: "Purge of deleted documents",
  reembed: "New vectors for a library",
  reread: "Reading files again",
  samples: "Sample documents",
  zotero: "Sync with Zotero",
};

function nameOf(kind: string): string {
  const name = KINDS[kind];
  return name === undefined ? kind.replaceAll("_", " ") : t(name);
}

/** Work under way and lately finished; it survives a restart of the server. */
export function JobsSection() {
  const list = useQuery(jobs);
  const batches = batchesOf(list.data?.jobs ?? []);
  return (
    <Section title={t("Jobs")}>
      {list.isPending && <Skeleton lines={3} />}
      {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {list.data?.jobs.length === 0 && <p className="text-sm text-muted">{t("Nothing has run yet.")}</p>}
      <ul>
        {batches.slice(0, SHOWN).map((jobs) => (jobs.length === 1 ? jobs.map((job) => <JobRow key={job.id} job={job} />) : <BatchRow key={jobs[0]?.id} jobs={jobs} />))}
      </ul>
      {batches.length > SHOWN && <p className="pt-2 text-xs text-muted">{t("and {n} more", { n: batches.length - SHOWN })}</p>}
    </Section>
  );
}

/** A folder is a job a file: those of a kind that ended alike within minutes are one row. */
export function batchesOf(jobs: readonly JobRecord[]): JobRecord[][] {
  const batches: JobRecord[][] = [];
  for (const job of jobs) {
    const alone = !finished(job) || job.errors.length > 0 || typeof job.result?.["reason"] === "string";
    const batch = alone ? undefined : batches.find((one) => fits(one.at(-1), job));
    if (batch === undefined) batches.push([job]);
    else batch.push(job);
  }
  return batches;
}

function fits(last: JobRecord | undefined, { kind, state, library, unit, updated_at }: JobRecord): boolean {
  if (last === undefined || last.errors.length > 0 || typeof last.result?.["reason"] === "string") return false;
  return last.kind === kind && last.state === state && last.library === library && last.unit === unit && Math.abs(Date.parse(last.updated_at) - Date.parse(updated_at)) < BATCH_MS;
}

function BatchRow({ jobs: [first, ...others] }: { jobs: readonly JobRecord[] }) {
  if (first === undefined) return null;
  const done = others.reduce((sum, job) => sum + job.done, first.done);
  return (
    <li className="flex flex-wrap items-center gap-2 border-b border-line py-2 last:border-b-0">
      <span className="font-medium">{nameOf(first.kind)}</span>
      <Tag tone={TONES[first.state]}>{t(STATES[first.state])}</Tag>
      <span className="text-xs text-muted tabular-nums">
        {t("{n} jobs", { n: count(others.length + 1) })}, {progressWords({ done, total: null, unit: first.unit, eta_s: null })} · {ago(first.updated_at)}
      </span>
    </li>
  );
}

function JobRow({ job }: { job: JobRecord }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: ({ method, action }: { method: "POST" | "DELETE"; action: string }) => call(method, `api/v1/jobs/${encodeURIComponent(job.id)}${action}`),
    onSettled: () => void client.invalidateQueries({ queryKey: ["jobs"] }),
  });
  const over = finished(job);
  const share = job.total === null || job.total === 0 ? null : job.done / job.total;
  return (
    <li className="grid grid-cols-[1fr_auto] items-center gap-x-3 border-b border-line py-2 last:border-b-0">
      <div className="min-w-0">
        <p className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{nameOf(job.kind)}</span>
          <Tag tone={TONES[job.state]}>{t(STATES[job.state])}</Tag>
          <span className="text-xs text-muted tabular-nums">
            {progressWords(over ? { ...job, eta_s: null } : job)}
            {over && ` · ${ago(job.updated_at)}`}
          </span>
        </p>
        {!over && <Meter value={share} label={t("Progress of {job}", { job: nameOf(job.kind) })} tone={job.state === "paused" ? "warn" : "info"} className="mt-1.5" />}
        {typeof job.result?.["reason"] === "string" && <p className="mt-1 text-sm">{job.result["reason"]}</p>}
        {job.errors.length > 0 && (
          <details className="mt-1 text-xs text-bad">
            <summary>{t("{n} errors", { n: job.errors.length })}</summary>
            <ul className="mt-1 max-h-40 overflow-y-auto">
              {job.errors.slice(0, 100).map((error, i) => (
                <li key={i} className="[overflow-wrap:anywhere]">
                  {error}
                </li>
              ))}
            </ul>
          </details>
        )}
        {act.isError && <Failure error={act.error} />}
      </div>
      {!over && (
        <div className="flex">
          {job.state === "paused" ? (
            <IconButton icon="play" label={t("Resume {job}", { job: nameOf(job.kind) })} onClick={() => act.mutate({ method: "POST", action: "/resume" })} />
          ) : (
            <IconButton icon="pause" label={t("Pause {job}", { job: nameOf(job.kind) })} onClick={() => act.mutate({ method: "POST", action: "/pause" })} />
          )}
          <IconButton icon="close" label={t("Cancel {job}", { job: nameOf(job.kind) })} onClick={() => act.mutate({ method: "DELETE", action: "" })} />
        </div>
      )}
    </li>
  );
}
