import { createContext, useContext } from "react";
import type { Library, Scope } from "@/api/types";
import { useStore } from "@/hooks/use-store";
import { type Filter, NO_FILTER } from "@/lib/filters";
import { Store } from "@/lib/store";

/** A document that the next question is limited to. */
export interface ScopedDocument {
  doc_id: string;
  library: Library;
  title: string;
}

/** The span that the reader shows and highlights; code points of that revision. */
export interface ReaderTarget {
  library: Library;
  doc_id: string;
  title: string;
  revision: number | null;
  start: number;
  end: number;
  page: number | null;
}

/** Which source of which exchange stands out, and the quote in it. */
export interface Focus {
  exchange: string;
  n: number;
  quote: { start: number; end: number; text: string } | null;
}

/** What the left side shows. */
export type Side = "conversations" | "documents";
export type Pane = Side | "chat" | "sources";

export interface Workspace {
  library: Scope;
  /** True once the person, not the page, decided on the library. */
  chosen: boolean;
  scope: readonly ScopedDocument[];
  filter: Filter;
  /** Documents that the next question leaves out, and whose sentences are hidden. */
  aside: readonly ScopedDocument[];
  focus: Focus | null;
  reader: ReaderTarget | null;
  /** The pane that a phone shows. */
  pane: Pane;
  side: Side;
  sideShown: boolean;
  /** Whether sources and hits show their scores. */
  scoresShown: boolean;
  /** Whether sentences have the tint of their source. */
  tinted: boolean;
}

export const initialWorkspace: Workspace = {
  library: "papers",
  chosen: false,
  scope: [],
  filter: NO_FILTER,
  aside: [],
  focus: null,
  reader: null,
  pane: "chat",
  side: "documents",
  sideShown: true,
  scoresShown: false,
  tinted: false,
};

export const WorkspaceContext = createContext<Store<Workspace> | null>(null);

export interface WorkspaceActions {
  choose: (library: Scope) => void;
  /** The page's own choice, which a person's choice overrules. */
  suggest: (library: Scope) => void;
  toggle: (document: ScopedDocument) => void;
  scopeTo: (documents: readonly ScopedDocument[]) => void;
  narrowTo: (filter: Filter) => void;
  focusOn: (focus: Focus | null) => void;
  read: (target: ReaderTarget | null) => void;
  showPane: (pane: Pane) => void;
  toggleSide: () => void;
  toggleScores: () => void;
  toggleTints: () => void;
  /** Leave a document out of the next question, or take it in again. */
  toggleAside: (document: ScopedDocument) => void;
  takeAllIn: () => void;
}

export function useWorkspaceStore(): Store<Workspace> {
  const store = useContext(WorkspaceContext);
  if (store === null) throw new Error("useWorkspace needs a WorkspaceContext above it");
  return store;
}

/** The selections that panes share: library, scope, focused source, open document. */
export function useWorkspace(): Workspace & WorkspaceActions {
  const store = useWorkspaceStore();
  return { ...useStore(store), ...workspaceActions(store) };
}

export function workspaceActions(store: Store<Workspace>): WorkspaceActions {
  return {
    choose: (library) =>
      store.set((w) => ({ ...w, library, chosen: true, scope: w.scope.filter((d) => library === "all" || d.library === library) })),
    suggest: (library) => store.set((w) => (w.chosen || w.library === library ? w : { ...w, library, scope: [] })),
    toggle: (document) =>
      store.set((w) => ({
        ...w,
        scope: toggled(w.scope, document),
      })),
    scopeTo: (documents) => store.set((w) => ({ ...w, scope: documents })),
    narrowTo: (filter) => store.set((w) => ({ ...w, filter })),
    focusOn: (focus) => store.set((w) => ({ ...w, focus, reader: null, pane: focus === null ? w.pane : "sources" })),
    read: (target) => store.set((w) => ({ ...w, reader: target, pane: target === null ? w.pane : "sources" })),
    showPane: (pane) => store.set((w) => (pane === "chat" || pane === "sources" ? { ...w, pane } : { ...w, pane, side: pane, sideShown: true })),
    toggleSide: () => store.set((w) => ({ ...w, sideShown: !w.sideShown })),
    toggleScores: () => store.set((w) => ({ ...w, scoresShown: !w.scoresShown })),
    toggleTints: () => store.set((w) => ({ ...w, tinted: !w.tinted })),
    toggleAside: ({ doc_id, library, title }) =>
      store.set((w) => ({ ...w, aside: toggled(w.aside, { doc_id, library, title }) })),
    takeAllIn: () => store.set((w) => ({ ...w, aside: [] })),
  };
}

function toggled(documents: readonly ScopedDocument[], one: ScopedDocument): readonly ScopedDocument[] {
  return documents.some((d) => same(d, one)) ? documents.filter((d) => !same(d, one)) : [...documents, one];
}

export function same(a: Pick<ScopedDocument, "doc_id" | "library">, b: Pick<ScopedDocument, "doc_id" | "library">): boolean {
  return a.doc_id === b.doc_id && a.library === b.library;
}

/** Where an upload goes: the library a person chose, else papers. */
export function uploadLibrary(workspace: Workspace): Library {
  return workspace.chosen && workspace.library !== "all" ? workspace.library : "papers";
}
