import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import { collections, documents } from "@/api/queries";
import type { DocumentRecord, Library } from "@/api/types";
import { Empty, Failure, Skeleton } from "@/components/ui/states";
import { same, type ScopedDocument, useWorkspace } from "@/hooks/use-workspace";
import { allows, narrows, wantedTags } from "@/lib/filters";
import { LIBRARY_NAMES, percent } from "@/lib/format";
import { t } from "@/lib/language";
import { otherLibrary } from "./move";
import { DocumentRow, ROW_HEIGHT } from "./document-row";

interface Props {
  libraries: readonly Library[];
  query: string;
  /** Kinds to show; empty shows all. */
  types: ReadonlySet<string>;
  /** How many documents of these kinds the libraries have; null while it is not known. */
  total: number | null;
  onSummarise: (document: DocumentRecord) => void;
  onDelete: (documents: readonly ScopedDocument[]) => void;
  onEdit: (documents: readonly ScopedDocument[]) => void;
  onMove: (documents: readonly ScopedDocument[]) => void;
}

/** The documents of libraries; only the rows in sight are in the page, further ones load as they come near. */
export function DocumentList({ libraries, query, types, total, onSummarise, onDelete, onEdit, onMove }: Props) {
  // What was found last stays until the next is there: the list neither blanks nor jumps while one types.
  const { scope, toggle, scopeTo, filter, read } = useWorkspace();
  const saved = useQuery(collections).data?.collections;
  // The server lists the documents of the tags; what else narrows the list is seen here.
  const list = useInfiniteQuery({ ...documents(libraries, query, wantedTags(filter, saved ?? [])), placeholderData: keepPreviousData });
  const loaded = useMemo(() => {
    const all = list.data?.pages.flatMap((page) => page.documents) ?? [];
    return types.size === 0 && !narrows(filter) ? all : all.filter((d) => (types.size === 0 || types.has(d.type)) && allows(d, filter, saved ?? []));
  }, [list.data, types, filter, saved]);
  const namesakes = useMemo(() => new Set(loaded.map((d) => d.title).filter((title, at, all) => all.indexOf(title) !== at)), [loaded]);
  const scroller = useRef<HTMLDivElement>(null);
  // The React compiler is not used here, so the virtualizer's changing functions are safe.
  // eslint-disable-next-line react-hooks/incompatible-library
  const rows = useVirtualizer({
    count: loaded.length + (list.hasNextPage ? 1 : 0),
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
  });
  const visible = rows.getVirtualItems();
  const lastVisible = visible.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  useEffect(() => {
    if (lastVisible >= loaded.length - 20 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [lastVisible, loaded.length, hasNextPage, isFetchingNextPage, fetchNextPage]);

  useEffect(() => {
    rows.scrollToOffset(0);
    // Another search begins at its top; the rows themselves move nothing.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [query, types, filter]);

  const filtered = query !== "" || types.size > 0 || narrows(filter);
  const chunks = loaded.reduce((sum, d) => sum + d.chunks, 0);
  const getting = chunks === 0 ? 1 : loaded.reduce((sum, d) => sum + d.embedded, 0) / chunks;
  const ticked = scope.filter((d) => libraries.includes(d.library));
  const from = ticked[0]?.library;
  const together = ticked.every((d) => d.library === from);
  return (
    <>
      <div className="flex min-h-7 flex-wrap items-center justify-between gap-x-2 px-3 py-1 text-2xs text-muted">
        <span>{ticked.length > 0 ? t("{n} documents ticked: the next question asks them alone", { n: ticked.length }) : countLine(loaded.length, hasNextPage, query === "" && !narrows(filter) ? total : null)}{ticked.length === 0 && getting < 1 && <span title={t("All are found by their words already; searching by meaning follows")}> · {t("getting ready, {share}", { share: percent(getting) })}</span>}</span>
        {ticked.length > 0 ? (
          <span className="flex flex-wrap gap-x-3">
            <Do what={t("Edit")} onClick={() => onEdit(ticked)} />
            {from !== undefined && together && <Do what={t("Move to {library}", { library: t(LIBRARY_NAMES[otherLibrary(from)]) })} onClick={() => onMove(ticked)} />}
            <Do what={t("Delete")} onClick={() => onDelete(ticked)} />
            <Do what={t("Untick")} onClick={() => scopeTo(scope.filter((d) => !libraries.includes(d.library)))} />
          </span>
        ) : (
          filtered && loaded.length > 0 && <Do what={t("Tick these")} onClick={() => scopeTo(loaded.slice(0, MOST_TICKS).map(({ doc_id, library, title }) => ({ doc_id, title, library })))} />
        )}
      </div>
      <div ref={scroller} className="min-h-32 flex-1 overflow-y-auto" data-testid="document-list">
        {list.isPending && <div className="px-3"><Skeleton lines={6} /></div>}
        {list.isError && list.data === undefined && <div className="p-3"><Failure error={list.error} onRetry={() => void list.refetch()} /></div>}
        {list.isSuccess && loaded.length === 0 && !hasNextPage && (
          <Empty title={filtered ? t("Nothing matches") : t("No documents yet")}>{filtered ? t("Try another word or clear the filters.") : t("Drop files or a folder here, or fetch a page by its address.")}</Empty>
        )}
        <div role="list" aria-label={t("Documents")} className="relative" style={{ height: rows.getTotalSize() }}>
          {visible.map((row) => {
            const document = loaded[row.index];
            const place = { height: row.size, transform: `translateY(${row.start}px)` };
            if (document === undefined) {
              return (
                <div key="more" role="listitem" className="absolute inset-x-0 top-0 px-3 py-3 text-xs text-muted" style={place}>
                  {t("Loading")}
                </div>
              );
            }
            return (
              <div key={`${document.library}/${document.doc_id}`} role="listitem" aria-setsize={hasNextPage ? -1 : loaded.length} aria-posinset={row.index + 1} className="absolute inset-x-0 top-0" style={place}>
                <DocumentRow
                  document={document}
                  placed={libraries.length > 1}
                  namesake={namesakes.has(document.title)}
                  ticked={scope.some((d) => same(d, document))}
                  onTick={() => toggle({ doc_id: document.doc_id, library: document.library, title: document.title })}
                  onOpen={() => read({ library: document.library, doc_id: document.doc_id, title: document.title, revision: document.revision, start: 0, end: 0, page: null })}
                  onSummarise={() => onSummarise(document)}
                  onDelete={() => onDelete([document])}
                  onEdit={() => onEdit([document])}
                  onMove={() => onMove([document])}
                />
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

function Do({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <button type="button" className="underline underline-offset-2 hover:text-ink pointer-coarse:py-1.5" onClick={onClick}>
      {what}
    </button>
  );
}

/** "216 documents", also while the list has only begun; of a search only what came is known. */
function countLine(loaded: number, more: boolean, total: number | null): string {
  if (more && total !== null) return t("{n} documents", { n: total });
  return t(more ? "first {n} documents" : "{n} documents", { n: loaded });
}

/** A question names at most this many documents; a whole library is a scope of its own. */
const MOST_TICKS = 200;
