import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { duplicates } from "@/api/queries";
import type { DuplicateGroup, Library } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { type ScopedDocument, useWorkspace } from "@/hooks/use-workspace";
import { ago } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const ALIKE: Record<DuplicateGroup["likeness"], Message> = { same_bytes: "the same file", same_text: "the same text", versions: "versions of one work" };

/** Says how many documents look alike, and lists them, to be read, removed or left. */
export function DuplicatesLine({ library, onDelete }: { library: Library; onDelete: (documents: readonly ScopedDocument[]) => void }) {
  const [open, setOpen] = useState(false);
  const { read } = useWorkspace();
  const groups = useQuery(duplicates(library)).data?.groups ?? [];
  if (groups.length === 0) return null;
  return (
    <div className="flex items-center justify-between gap-2 border-b border-line px-3 py-1.5 text-xs text-muted">
      <span>{t("{n} groups of documents look alike", { n: groups.length })}</span>
      <Button look="quiet" onClick={() => setOpen(true)} className="-my-0.5 text-accent">
        {t("Look at them")}
      </Button>
      <Dialog title={t("Documents that look alike")} open={open} onClose={() => setOpen(false)}>
        <ul className="flex max-h-[60vh] flex-col gap-4 overflow-y-auto">
          {groups.map(({ likeness, documents }) => (
            <li key={documents.map((one) => one.doc_id).join()}>
              <p className="mb-1 text-xs text-muted">{t(ALIKE[likeness])}</p>
              <ul className="rounded-md border border-line">
                {documents.map(({ doc_id, title, filename, added_at }) => (
                  <li key={doc_id} className="flex items-center gap-2 border-b border-line px-3 py-1.5 text-sm last:border-b-0">
                    <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
                      {title}
                      <span className="block text-2xs text-muted">{[filename, ago(added_at)].filter(Boolean).join(" · ")}</span>
                    </span>
                    <Button
                      look="quiet"
                      onClick={() => {
                        setOpen(false);
                        read({ library, doc_id, title, revision: null, start: 0, end: 0, page: null });
                      }}
                    >
                      {t("Open")}
                    </Button>
                    <Button look="quiet" onClick={() => onDelete([{ doc_id, library, title }])}>
                      {t("Delete")}
                    </Button>
                  </li>
                ))}
              </ul>
            </li>
          ))}
        </ul>
      </Dialog>
    </div>
  );
}
