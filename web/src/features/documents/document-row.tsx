import { download } from "@/api/originals";
import type { DocumentRecord } from "@/api/types";
import { IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { ActionMenu } from "@/components/ui/menu";
import { byline, LIBRARY_NAMES } from "@/lib/format";
import { t } from "@/lib/language";
import { otherLibrary } from "./move";

/** Height of a row in pixels; the list is virtual and needs it fixed. */
export const ROW_HEIGHT = 50;

interface Props {
  document: DocumentRecord;
  /** The row says in which library it is. */
  placed: boolean;
  /** Another document has the same title: the file tells them apart. */
  namesake: boolean;
  ticked: boolean;
  onTick: () => void;
  onOpen: () => void;
  onSummarise: () => void;
  onDelete: () => void;
  onEdit: () => void;
  onMove: () => void;
}

/** Own metadata that other programs and the reader open a document by; no line of a list. */
const OPENED_BY = new Set(["obsidian", "zotero", "links", "blocks"]);

export function DocumentRow({ document, placed, namesake, ticked, onTick, onOpen, onSummarise, onDelete, onEdit, onMove }: Props) {
  const details = [
    placed ? t(LIBRARY_NAMES[document.library]) : "",
    document.sample ? t("sample") : "",
    namesake ? document.filename : document.type,
    byline(document.authors, document.year),
    document.pages > 0 ? t("{n} pages", { n: document.pages }) : "",
    document.duplicate_of === null ? "" : t("duplicate"),
    ...Object.entries(document.metadata)
      .filter(([key]) => !OPENED_BY.has(key))
      .map(([key, value]) => `${key}: ${value}`),
  ].filter(Boolean);
  return (
    <div className={cx("group relative flex h-full items-center gap-2 px-3 hover:bg-sunken", ticked && "bg-accent-soft")}>
      <input type="checkbox" checked={ticked} onChange={onTick} aria-label={t("Ask only {title}", { title: document.title })} className="size-3.5 shrink-0 accent-accent" />
      <button type="button" onClick={onOpen} title={document.title} className="min-w-0 flex-1 py-1 text-left">
        <span className="block truncate text-sm text-ink">{document.title}</span>
        <span className="block truncate text-2xs text-muted" title={[...document.tags.map((tag) => `#${tag}`), ...details].join(" · ")}>
          {document.tags.map((tag) => (
            <span key={tag} className="mr-1 rounded-sm bg-accent-soft px-1 text-accent">
              {tag}
            </span>
          ))}
          {details.join(" · ")}
        </span>
      </button>
      <div className="absolute right-1.5 flex rounded-md bg-sunken opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 has-data-[state=open]:opacity-100 pointer-coarse:static pointer-coarse:bg-transparent pointer-coarse:opacity-100">
        <IconButton icon="summary" label={t("Summarise {title}", { title: document.title })} onClick={onSummarise} className="pointer-coarse:hidden" />
        <IconButton icon="trash" label={t("Delete {title}", { title: document.title })} onClick={onDelete} className="pointer-coarse:hidden" />
        <ActionMenu
          label={t("More about {title}", { title: document.title })}
          actions={[
            [t("Summarise"), onSummarise],
            [t("Ask only this"), onTick],
            ...(document.has_original ? [[t("Download the original"), () => void download(document)] as const] : []),
            [t("Edit title, tags, metadata"), onEdit],
            [t("Move to {library}", { library: t(LIBRARY_NAMES[otherLibrary(document.library)]) }), onMove],
            [t("Delete"), onDelete],
          ]}
        />
      </div>
    </div>
  );
}
