import { useEffect } from "react";
import { nameView, parseHash, useRoute } from "@/hooks/use-route";
import { type Pane, type ReaderTarget, useWorkspace, useWorkspaceStore, type Workspace } from "@/hooks/use-workspace";

const PANES: readonly string[] = ["conversations", "documents", "chat", "sources"] satisfies Pane[];

/** Where one pane is shown at a time, as the styles have it. */
export function isNarrow(): boolean {
  return window.matchMedia("(width < 64rem)").matches;
}

/** Keep the address and what stands open in step: opening a document or a pane is a step that Back takes back. */
export function useViewAddress(): void {
  const { page, view } = useRoute();
  const store = useWorkspaceStore();
  const { reader, pane } = useWorkspace();
  useEffect(() => {
    if (viewText(store.get(), isNarrow()) === view) return;
    const { reader: wanted, pane: named } = viewOf(view);
    store.set((w) => ({ ...w, reader: wanted, pane: named, side: named === "conversations" || named === "documents" ? named : w.side }));
  }, [store, page, view]);
  useEffect(() => {
    const text = viewText({ reader, pane }, isNarrow());
    if (text !== parseHash(window.location.hash).view) nameView("push", text);
  }, [reader, pane]);
}

/** What stands open next to the page as text of an address: `doc=papers:ID:REVISION:START:END:PAGE&pane=sources`. */
export function viewText({ reader, pane }: Pick<Workspace, "reader" | "pane">, narrow: boolean): string {
  const parts = [];
  if (reader !== null) {
    const { library, doc_id, revision, start, end, page } = reader;
    parts.push(`doc=${[library, doc_id, revision ?? "", start, end, page ?? ""].map(encodeURIComponent).join(":")}`);
  }
  if (narrow && pane !== "chat" && !(reader !== null && pane === "sources")) parts.push(`pane=${pane}`);
  return parts.join("&");
}

/** What such a text asks for; a document's title is not known yet. */
export function viewOf(text: string): Pick<Workspace, "reader" | "pane"> {
  const query = new URLSearchParams(text);
  const reader = readerOf(query.get("doc"));
  const named = query.get("pane") ?? "";
  const pane = PANES.includes(named) ? (named as Pane) : reader === null ? "chat" : "sources";
  return { reader, pane };
}

/** What `view_url` of a source asks for: `?library=&doc=&revision=&start=&end=` is that span. */
export function linkedReader(search: string): ReaderTarget | null {
  const query = new URLSearchParams(search);
  return readerOf(["library", "doc", "revision", "start", "end"].map((name) => query.get(name) ?? "").join(":"));
}

function readerOf(text: string | null): ReaderTarget | null {
  const [library, doc_id = "", revision, start, end, page] = (text ?? "").split(":");
  if ((library !== "public" && library !== "papers") || doc_id === "") return null;
  const from = number(start) ?? 0;
  return { library, doc_id, title: doc_id, revision: number(revision), start: from, end: number(end) ?? from, page: number(page) };
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
