import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { call, get } from "@/api/http";
import { libraries } from "@/api/queries";
import type { CollectionStats, DocumentRecord, Library, Scope } from "@/api/types";
import { FilterBar } from "@/components/filter-bar";
import { Banner, UndoBanners } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { SearchInput, Segmented } from "@/components/ui/field";
import { useChat } from "@/hooks/use-chat";
import { useDebounced } from "@/hooks/use-debounced";
import { GRACE_S, useDeletion, type Deletion } from "@/hooks/use-deletion";
import { same, type ScopedDocument, uploadLibrary, useWorkspace } from "@/hooks/use-workspace";
import { samplesIn } from "@/lib/first-steps";
import { count, LIBRARY_NAMES } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { DuplicatesLine } from "./duplicates";
import { EditDialog } from "./edit-dialog";
import { LinkForm } from "./link-form";
import { DocumentList } from "./document-list";
import { otherLibrary, useMove } from "./move";
import { PasteText } from "./paste-text";
import { SamplesLine } from "./samples-line";
import { SyncedFolders } from "./synced-folders";
import { UploadList } from "./upload-list";
import { ZoteroSync } from "./zotero-sync";

const EVERY: readonly Library[] = ["papers", "public"];

/** How many documents of each kind libraries have together; null until all have told. */
function summed(stats: readonly { data: CollectionStats | undefined }[]): Record<string, number> | null {
  const sums: Record<string, number> = {};
  for (const { data } of stats) {
    if (data === undefined) return null;
    for (const [type, n] of Object.entries(data.by_type)) sums[type] = (sums[type] ?? 0) + n;
  }
  return sums;
}

/** Left pane: which library, its documents, and the ways to add to it. */
export function DocumentsPane({ onPickFiles, onPickFolder }: { onPickFiles: () => void; onPickFolder: () => void }) {
  const workspace = useWorkspace();
  const [query, setQuery] = useState("");
  const [types, setTypes] = useState<ReadonlySet<string>>(new Set());
  const [edited, setEdited] = useState<readonly ScopedDocument[]>([]);
  const rested = useDebounced(query.trim());
  const deletion = useDocumentDeletion();
  const moving = useMove();
  const chat = useChat();
  const summarise = ({ doc_id, library, title }: DocumentRecord): void => {
    chat.summarise({ doc_id, library, title });
    workspace.showPane("chat");
  };
  const all = useQuery(libraries);
  const shown = useMemo(() => (workspace.library === "all" ? EVERY : [workspace.library]), [workspace.library]);
  const byType = useQueries({
    queries: shown.map((library) => ({
      queryKey: ["documents", "stats", library],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<CollectionStats>("api/v1/collection/stats", { library }, signal),
    })),
    combine: summed,
  });
  const total = (library: Library): number => all.data?.libraries.find((l) => l.library === library)?.documents ?? 0;
  const choose = (library: Scope): void => {
    workspace.choose(library);
    setTypes(new Set());
  };
  const kinds = Object.entries(byType ?? {}).sort((a, b) => b[1] - a[1]);
  const chosen = types.size === 0 ? kinds : kinds.filter(([type]) => types.has(type));
  const listedTotal = byType === null ? null : chosen.reduce((sum, [, n]) => sum + n, 0);
  return (
    <section aria-label={t("Documents")} className="flex h-full min-h-0 flex-col overflow-y-auto border-r border-line bg-paper">
      <div className="flex flex-col gap-2 border-b border-line p-3">
        <Segmented
          label={t("Library")}
          value={workspace.library}
          onValue={choose}
          options={[
            { value: "papers", label: <Counted name={t("My documents")} n={total("papers")} />, title: t("Your own documents") },
            { value: "public", label: <Counted name={t("Public")} n={total("public")} />, title: t("Encyclopedia text") },
            { value: "all", label: t("All"), title: t("Both libraries") },
          ]}
        />
        <SearchInput id="find-document" label={t("Find a document")} placeholder={t("Find a document")} value={query} onValue={setQuery} />
        {kinds.length > 1 && (
          <div role="group" aria-label={t("Types")} className="flex flex-wrap gap-1">
            {kinds.map(([type, n]) => (
              <button
                key={type}
                type="button"
                aria-pressed={types.has(type)}
                onClick={() => setTypes((was) => toggled(was, type))}
                className={cx("rounded-full border px-2 text-2xs", types.has(type) ? "border-accent bg-accent-soft text-accent" : "border-line text-muted hover:text-ink")}
              >
                {type} {count(n)}
              </button>
            ))}
          </div>
        )}
        <FilterBar />
      </div>
      <UploadList />
      <SamplesLine samples={samplesIn(all.data?.libraries ?? [])} />
      {workspace.library !== "all" && total(workspace.library) > 1 && <DuplicatesLine library={workspace.library} onDelete={deletion.remove} />}
      <UndoBanners title={deletion.undoable === null ? null : (deletion.undoable.length === 1 ? deletion.undoable[0]?.title : t("{n} documents", { n: deletion.undoable.length })) ?? null} error={deletion.error} onUndo={deletion.undo} onDismiss={deletion.dismiss} />
      <MoveBanner moving={moving} />
      <DocumentList key={workspace.library} libraries={shown} query={rested} types={types} total={listedTotal} onSummarise={summarise} onDelete={deletion.remove} onEdit={setEdited} onMove={moving.mutate} />
      {edited.length > 0 && <EditDialog documents={edited} onClose={() => setEdited([])} />}
      <div className="mt-auto flex flex-col gap-2 border-t border-line p-3">
        <div className="rounded-md border border-dashed border-line-strong px-3 py-2 text-center text-xs text-muted">
          {tx("Drop or choose {files}, {folder} or {paste} for {library}", {
            files: (
              <button type="button" onClick={onPickFiles} className="text-accent underline underline-offset-2">
                {t("files")}
              </button>
            ),
            folder: (
              <button type="button" onClick={onPickFolder} className="text-accent underline underline-offset-2">
                {t("a folder")}
              </button>
            ),
            paste: <PasteText />,
            library: <strong className="font-semibold text-ink">{t(LIBRARY_NAMES[uploadLibrary(workspace)])}</strong>,
          })}
        </div>
        <LinkForm />
        <ZoteroSync />
        <SyncedFolders />
      </div>
    </section>
  );
}

/** That documents are on their way to the other library, that they are there, or why not. */
function MoveBanner({ moving: { variables, isIdle, isPending, error, reset } }: { moving: ReturnType<typeof useMove> }) {
  const first = variables?.[0];
  if (isIdle || first === undefined) return null;
  const said = { n: variables.length, library: t(LIBRARY_NAMES[otherLibrary(first.library)]) };
  return (
    <div className="border-b border-line p-2">
      <Banner tone={error === null ? "info" : "bad"} action={isPending ? undefined : <Button look="quiet" onClick={reset}>{t("Close")}</Button>}>
        {error !== null ? error.message : isPending ? t("Moving {n} documents to {library}…", said) : t("{n} documents are in {library} now.", said)}
      </Banner>
    </div>
  );
}

function Counted({ name, n }: { name: string; n: number }) {
  return (
    <>
      {name} <span className="font-normal tabular-nums">{count(n)}</span>
    </>
  );
}

function toggled(set: ReadonlySet<string>, value: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** Deletes one document or many, and brings them back together. */
function useDocumentDeletion(): Deletion<readonly ScopedDocument[]> {
  const client = useQueryClient();
  const { scope, scopeTo } = useWorkspace();
  const path = (document: ScopedDocument): string => `api/v1/papers/${encodeURIComponent(document.doc_id)}`;
  return useDeletion<readonly ScopedDocument[]>({
    remove: (documents) => Promise.all(documents.map((one) => call("DELETE", path(one), undefined, { library: one.library, grace_s: GRACE_S }))),
    restore: (documents) => Promise.all(documents.map((one) => call("POST", `${path(one)}/restore`, undefined, { library: one.library }))),
    onRemoved: (documents) => scopeTo(scope.filter((ticked) => !documents.some((one) => same(one, ticked)))),
    refresh: () => {
      for (const key of ["documents", "libraries", "suggestions", "tags"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}
