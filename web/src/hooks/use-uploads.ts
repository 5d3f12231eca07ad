import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useMemo } from "react";
import { ApiError, Unreachable } from "@/api/http";
import { uploadFile } from "@/api/upload";
import type { IngestOutcome, Library } from "@/api/types";
import { useStore } from "@/hooks/use-store";
import { uploadLibrary, workspaceActions, type Workspace } from "@/hooks/use-workspace";
import type { PickedFile } from "@/lib/dropped-files";
import { localId } from "@/lib/local-id";
import { Store } from "@/lib/store";
import { tabs } from "@/lib/tabs";

export type UploadState = "waiting" | "sending" | "reading" | "done" | "failed" | "stopped";

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

/** Two at a time: one is parsed while the next is on its way. */
const AT_ONCE = 2;

/** The queue of files; each is its own request, so that one bad file fails alone and can be tried again. */
export class UploadQueue {
  readonly store = new Store<readonly Upload[]>([]);
  readonly #workspace: Store<Workspace>;
  readonly #waiting: Queued[] = [];
  readonly #files = new Map<string, Queued>();
  readonly #running = new Map<string, AbortController>();

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
    const at = this.#waiting.findIndex((item) => item.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#change(id, { state: "stopped", reason: null });
  }

  /** Take what is finished off the list. */
  clear(): void {
    this.store.set((list) => list.filter((u) => u.state === "waiting" || u.state === "sending" || u.state === "reading"));
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
      const onSent = (sent: number): void => this.#change(item.id, { sent, state: sent >= 1 ? "reading" : "sending" });
      const reply = await uploadFile(item.picked.file, item.library, item.picked.path, onSent, controller.signal);
      const outcome = reply.documents[0] ?? null;
      const failed = outcome === null || outcome.status === "failed";
      this.#change(item.id, { state: failed ? "failed" : "done", outcome, jobId: reply.job_id, reason: outcome?.reason ?? null, retryable: !FOR_GOOD.has(outcome?.code ?? ""), sent: 1 });
      if (!failed) this.#files.delete(item.id);
    } catch (error) {
      if (!controller.signal.aborted) this.#change(item.id, { state: "failed", reason: reasonOf(error), retryable: !(error instanceof ApiError && FOR_GOOD.has(error.problem.code)) });
    } finally {
      this.#running.delete(item.id);
      this.#pump(client);
      tabs.tell(null);
      for (const key of ["documents", "libraries", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
    }
  }

  #change(id: string, change: Partial<Upload>): void {
    this.store.set((list) => list.map((u) => (u.id === id ? { ...u, ...change, id: u.id, name: u.name, library: u.library } : u)));
  }
}

const blank: Upload = { id: "", name: "", library: "papers", state: "waiting", sent: 0, outcome: null, jobId: null, reason: null, retryable: true };

/** Codes of refusals that the file itself is the reason for. */
const FOR_GOOD = new Set(["unsupported_type", "encrypted", "no_text_layer", "unreadable", "too_large", "invalid_input"]);

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
