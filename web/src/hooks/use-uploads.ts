import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useMemo } from "react";
import { ApiError, call, get, Unreachable } from "@/api/http";
import { finished } from "@/api/queries";
import { uploadFile } from "@/api/upload";
import type { IngestOutcome, JobRecord, Library } from "@/api/types";
import { useStore } from "@/hooks/use-store";
import { uploadLibrary, workspaceActions, type Workspace } from "@/hooks/use-workspace";
import type { PickedFile } from "@/lib/dropped-files";
import { localId } from "@/lib/local-id";
import { Store } from "@/lib/store";
import { tabs } from "@/lib/tabs";

/** Up to `sending` the tab holds the file; from `accepted` on the server does, also without the tab. */
export type UploadState = "waiting" | "sending" | "accepted" | "reading" | "done" | "failed" | "stopped";

/** One file on its way into a library. */
export interface Upload {
  id: string;
  name: string;
  library: Library;
  state: UploadState;
  /** Share of the bytes that were sent, [0, 1]. */
  sent: number;
  outcome: IngestOutcome | null;
  jobId: string | null;
  reason: string | null;
  /** Whether another try can end otherwise: a file that cannot be read never can. */
  retryable: boolean;
}

interface Queued {
  id: string;
  picked: PickedFile;
  library: Library;
}

/** Requests at a time that send files. */
const AT_ONCE = 2;
/** Between two looks at the jobs of accepted files. */
const LOOK_EVERY_MS = 800;
/** Jobs that one look asks for at most, oldest first: the server reads files in the order in which they came. */
const LOOKED_AT = 4;

/** Whether closing the tab would lose the file. */
export function inTab({ state }: Upload): boolean {
  return state === "waiting" || state === "sending";
}

/** Whether it is still on its way into the library. */
export function moving(upload: Upload): boolean {
  return inTab(upload) || upload.state === "accepted" || upload.state === "reading";
}

/** Hands files over to the server, which queues them; each is its own request, so that one bad file fails alone and can be tried again. */
export class UploadQueue {
  readonly store = new Store<readonly Upload[]>([]);
  readonly #workspace: Store<Workspace>;
  readonly #waiting: Queued[] = [];
  readonly #files = new Map<string, Queued>();
  readonly #running = new Map<string, AbortController>();
  /** The jobs of what the server holds and has not read, oldest first, by upload. */
  readonly #accepted = new Map<string, string>();
  #looking = false;

  constructor(workspace: Store<Workspace>) {
    this.#workspace = workspace;
  }

  add(files: readonly PickedFile[], client: QueryClient): void {
    if (files.length === 0) return;
    const library = uploadLibrary(this.#workspace.get());
    const queued = files.map((picked) => ({ id: localId(), picked, library }));
    for (const item of queued) this.#files.set(item.id, item);
    const fresh = queued.map((item): Upload => ({ ...blank, id: item.id, name: item.picked.path ?? item.picked.file.name, library }));
    this.store.set((list) => [...fresh, ...list]);
    this.#waiting.push(...queued);
    // What is being added is what the next question is about; the page's own choice must not come back when the libraries are asked for again.
    const { library: shown, chosen } = this.#workspace.get();
    if (shown !== library && (shown !== "all" || !chosen)) workspaceActions(this.#workspace).choose(library);
    this.#pump(client);
  }

  retry(id: string, client: QueryClient): void {
    const item = this.#files.get(id);
    if (item === undefined) return;
    this.#change(id, { ...blank });
    this.#waiting.push(item);
    this.#pump(client);
  }

  stop(id: string): void {
    this.#running.get(id)?.abort();
    const jobId = this.#accepted.get(id);
    if (jobId !== undefined) {
      call<JobRecord>("DELETE", `api/v1/jobs/${encodeURIComponent(jobId)}`).then(
        (record) => this.#settle(id, progress(record)),
        (error: unknown) => this.#change(id, { reason: reasonOf(error) }),
      );
      return;
    }
    const at = this.#waiting.findIndex((item) => item.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#change(id, { state: "stopped", reason: null });
  }

  /** Take what is finished off the list. */
  clear(): void {
    this.store.set((list) => list.filter(moving));
  }

  #pump(client: QueryClient): void {
    while (this.#running.size < AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      void this.#run(next, client);
    }
  }

  async #run(item: Queued, client: QueryClient): Promise<void> {
    const controller = new AbortController();
    this.#running.set(item.id, controller);
    this.#change(item.id, { state: "sending" });
    try {
      const onSent = (sent: number): void => this.#change(item.id, { sent });
      const { job_id: jobId } = await uploadFile(item.picked.file, item.library, item.picked.path, "false", onSent, controller.signal);
      this.#change(item.id, { state: "accepted", jobId, sent: 1 });
      this.#accepted.set(item.id, jobId);
      if (!this.#looking) void this.#look(client);
    } catch (error) {
      if (!controller.signal.aborted) this.#change(item.id, { state: "failed", reason: reasonOf(error), retryable: !(error instanceof ApiError && FOR_GOOD.has(error.problem.code)) });
    } finally {
      this.#running.delete(item.id);
      this.#pump(client);
    }
  }

  /** Look at the oldest accepted files until none is left. */
  async #look(client: QueryClient): Promise<void> {
    this.#looking = true;
    for (; this.#accepted.size > 0; await new Promise((wake) => setTimeout(wake, LOOK_EVERY_MS))) {
      let unread = 0;
      let changed = false;
      for (const [id, jobId] of [...this.#accepted]) {
        if (unread === LOOKED_AT) break;
        const read = await this.#lookAt(id, jobId);
        changed ||= read;
        unread += read ? 0 : 1;
      }
      if (!changed) continue;
      tabs.tell(null);
      for (const key of ["documents", "libraries", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
    }
    this.#looking = false;
  }

  /** Tell where a file's job is; returns whether the file is read, or never will be. */
  async #lookAt(id: string, jobId: string): Promise<boolean> {
    let change: Partial<Upload>;
    try {
      change = progress(await get<JobRecord>(`api/v1/jobs/${encodeURIComponent(jobId)}`));
    } catch (error) {
      // A server that is away goes on with the file when it is back; a job that it does not know never ends.
      if (!(error instanceof ApiError) || error.problem.retryable) return false;
      change = { state: "failed", reason: reasonOf(error) };
    }
    return this.#settle(id, change);
  }

  #settle(id: string, change: Partial<Upload>): boolean {
    this.#change(id, change);
    if (change.state === "accepted" || change.state === "reading") return false;
    this.#accepted.delete(id);
    if (change.state === "done") this.#files.delete(id);
    return true;
  }

  #change(id: string, change: Partial<Upload>): void {
    this.store.set((list) => list.map((u) => (u.id === id ? { ...u, ...change, id: u.id, name: u.name, library: u.library } : u)));
  }
}

const blank: Upload = { id: "", name: "", library: "papers", state: "waiting", sent: 0, outcome: null, jobId: null, reason: null, retryable: true };

/** Codes of refusals that the file itself is the reason for. */
const FOR_GOOD = new Set(["unsupported_type", "encrypted", "no_text_layer", "unreadable", "too_large", "invalid_input"]);

/** Where an accepted file is, by its job: vectors may still follow when its text is found. */
function progress(record: JobRecord): Partial<Upload> {
  const outcome = (record.result?.["documents"] as IngestOutcome[] | undefined)?.[0] ?? null;
  if (outcome !== null) {
    const failed = outcome.status === "failed";
    return { state: failed ? "failed" : "done", outcome, reason: outcome.reason ?? null, retryable: !FOR_GOOD.has(outcome.code ?? "") };
  }
  if (record.state === "cancelled") return { state: "stopped", reason: null };
  const error = record.result?.["error"] as { code: string; detail: string } | undefined;
  const reason = error?.detail ?? record.errors.at(-1) ?? null;
  if (finished(record)) return { state: "failed", reason, retryable: !FOR_GOOD.has(error?.code ?? "") };
  return { state: record.state === "running" ? "reading" : "accepted", reason };
}

function reasonOf(error: unknown): string {
  if (error instanceof ApiError || error instanceof Unreachable) return error.message;
  return String(error);
}

export const UploadContext = createContext<UploadQueue | null>(null);

export interface UploadActions {
  add: (files: readonly PickedFile[]) => void;
  retry: (id: string) => void;
  stop: (id: string) => void;
  clear: () => void;
}

export function useUploads(): { uploads: readonly Upload[] } & UploadActions {
  const queue = useContext(UploadContext);
  if (queue === null) throw new Error("useUploads needs an UploadContext above it");
  const client = useQueryClient();
  const uploads = useStore(queue.store);
  const actions = useMemo<UploadActions>(
    () => ({
      add: (files) => queue.add(files, client),
      retry: (id) => queue.retry(id, client),
      stop: (id) => queue.stop(id),
      clear: () => queue.clear(),
    }),
    [queue, client],
  );
  return { uploads, ...actions };
}
