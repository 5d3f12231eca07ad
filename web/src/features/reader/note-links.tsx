import { useQuery } from "@tanstack/react-query";
import { documentLinks } from "@/api/queries";
import type { DocumentRecord, Neighbours } from "@/api/types";
import { useWorkspace } from "@/hooks/use-workspace";
import { t } from "@/lib/language";

/** The notes of a vault that a note leads to, and those that lead to it; nothing for any other document. */
export function NoteLinks({ note }: { note: DocumentRecord }) {
  const isNote = note.metadata["obsidian"] !== undefined;
  const { data } = useQuery({ ...documentLinks(note.library, note.doc_id), enabled: isNote });
  if (!isNote || data === undefined || data.links.length + data.backlinks.length === 0) return null;
  return (
    <details className="shrink-0 border-b border-line px-3 py-1 text-xs text-muted">
      <summary className="hover:text-ink">{t("Leads to {to}, linked from {back}", { to: data.links.length, back: data.backlinks.length })}</summary>
      <div className="max-h-[30vh] overflow-y-auto py-1">
        <Notes name={t("Leads to")} notes={data.links} of={note} />
        <Notes name={t("Linked from")} notes={data.backlinks} of={note} />
      </div>
    </details>
  );
}

function Notes({ name, notes, of }: { name: string; notes: Neighbours["links"]; of: DocumentRecord }) {
  const { read } = useWorkspace();
  if (notes.length === 0) return null;
  return (
    <div className="mb-1">
      <p>{name}</p>
      <ul aria-label={name} className="flex flex-wrap gap-x-3">
        {notes.map(({ doc_id, title }) => (
          <li key={doc_id}>
            <button type="button" className="text-accent underline underline-offset-2" onClick={() => read({ library: of.library, doc_id, title, revision: null, start: 0, end: 0, page: null })}>
              {title}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
