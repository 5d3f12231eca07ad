import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactNode } from "react";
import { call } from "@/api/http";
import { corrections, documentPart } from "@/api/queries";
import type { CorrectionList, DocumentRecord, DocumentText, TextCorrection } from "@/api/types";
import { Button, IconButton } from "@/components/ui/button";
import { Failure, Skeleton } from "@/components/ui/states";
import { Tag } from "@/components/ui/tag";
import { type ReaderTarget, useWorkspace } from "@/hooks/use-workspace";
import { splitAround } from "@/lib/codepoints";
import { editsOf } from "@/lib/corrections";
import { ago } from "@/lib/format";
import { t } from "@/lib/language";

const PdfSheet = lazy(async () => ({ default: (await import("./pdf-view")).PdfSheet }));

/** Code points of a part of a text without pages. */
const PART = 4000;

const pathOf = (document: DocumentRecord): string => `api/v1/documents/${encodeURIComponent(document.doc_id)}/corrections`;

/** A page of a document beside its text, to mend what was read wrong; below, what was corrected so far. */
export function CorrectView({ document, target }: { document: DocumentRecord; target: ReaderTarget }) {
  const parts = document.pages > 0 ? document.pages : Math.max(1, Math.ceil(document.characters / PART));
  const [part, setPart] = useState(() => Math.min(parts, document.pages > 0 ? (target.page ?? 1) : Math.floor(target.start / PART) + 1));
  const [draft, setDraft] = useState<string | null>(null);
  const { library, doc_id: docId, revision } = document;
  const place = document.pages > 0 ? { page: part } : { start: (part - 1) * PART, end: Math.min(document.characters, part * PART) };
  const text = useQuery(documentPart(library, docId, revision, place));
  const listed = useQuery(corrections(library, docId, revision));
  const change = useChange(document, target, () => setDraft(null));
  const all = listed.data?.corrections ?? [];
  return (
    <div className="@container min-h-0 flex-1 overflow-y-auto bg-surface" tabIndex={0} role="region" aria-label={t("Correct what was read")}>
      <div className="sticky top-0 z-10 flex flex-wrap items-center gap-2 border-b border-line bg-paper px-2 py-1 text-xs text-muted">
        <IconButton icon="left" label={t("Page before")} disabled={part <= 1 || draft !== null} onClick={() => setPart(part - 1)} />
        <span className="tabular-nums" aria-live="polite">
          {t(document.pages > 0 ? "Page {part} of {parts}" : "Part {part} of {parts}", { part, parts })}
        </span>
        <IconButton icon="right" label={t("Page after")} disabled={part >= parts || draft !== null} onClick={() => setPart(part + 1)} />
        <span className="ml-auto flex gap-1.5">
          {draft === null ? (
            <Button disabled={text.data === undefined || text.data.text.trim() === ""} onClick={() => setDraft(text.data?.text.trimEnd() ?? null)}>
              {t("Edit the words")}
            </Button>
          ) : (
            <Saving text={text.data} draft={draft} pending={change.isPending} onSave={(edits) => change.mutate({ revision, corrections: edits })} onCancel={() => setDraft(null)} />
          )}
        </span>
      </div>
      {change.isError && (
        <div className="p-2">
          <Failure error={change.error} what={t("Nothing was changed.")} />
        </div>
      )}
      <div className={document.type === "pdf" ? "grid gap-4 p-4 @xl:grid-cols-2" : "p-4"}>
        {document.type === "pdf" && (
          <Suspense fallback={<Skeleton lines={8} />}>
            <PdfSheet library={library} docId={docId} revision={revision} page={part} />
          </Suspense>
        )}
        {text.isPending && <Skeleton lines={8} />}
        {text.isError && <Failure error={text.error} onRetry={() => void text.refetch()} />}
        {text.data !== undefined && draft === null && <Read text={text.data} all={all} />}
        {text.data !== undefined && draft !== null && (
          <textarea
            autoFocus
            aria-label={t("Words of this page")}
            aria-describedby="how-to-correct"
            value={draft}
            disabled={change.isPending}
            onChange={(event) => setDraft(event.target.value)}
            className="field-sizing-content min-h-96 w-full resize-y rounded-md border border-line-strong bg-surface px-3 py-2 font-serif text-[0.9375rem] leading-6 text-ink"
          />
        )}
      </div>
      <div className="px-4 pb-4 text-xs text-muted">
        <p id="how-to-correct">{t("Change what was read wrong. The file itself is not touched, and answers of before keep their words. Title, authors and year are changed in the list of documents.")}</p>
        <h3 className="mt-3 mb-1 font-semibold text-ink">{t("Corrections of this document")}</h3>
        {listed.isError && <Failure error={listed.error} onRetry={() => void listed.refetch()} />}
        {listed.isSuccess && all.length === 0 && <p>{t("Nothing was corrected.")}</p>}
        <ol aria-label={t("Corrections of this document")} className="flex flex-col divide-y divide-line">
          {all.map((one) => (
            <Line key={one.n} one={one} busy={change.isPending || draft !== null} onShow={one.page === null || draft !== null ? null : () => setPart(one.page ?? 1)} onUndo={() => change.mutate({ revision, undo: one.n })} />
          ))}
        </ol>
      </div>
    </div>
  );
}

type Change = { revision: number; corrections: ReturnType<typeof editsOf> } | { revision: number; undo: number };

/** Sends a change; the document is then another revision, which the reader shows if it showed no certain words. */
function useChange(document: DocumentRecord, target: ReaderTarget, onDone: () => void) {
  const client = useQueryClient();
  const { read } = useWorkspace();
  const { library } = document;
  return useMutation({
    mutationFn: (change: Change) =>
      "undo" in change
        ? call<CorrectionList>("DELETE", `${pathOf(document)}/${change.undo}`, undefined, { library, revision: change.revision })
        : call<CorrectionList>("POST", pathOf(document), change, { library }),
    onSuccess: async (made) => {
      client.setQueryData(corrections(library, document.doc_id, made.revision).queryKey, made);
      await client.invalidateQueries({ queryKey: ["document", library, document.doc_id] });
      if (target.start === target.end) read({ ...target, revision: made.revision });
      onDone();
    },
    // Refused because another revision is live by now: what is shown follows it.
    onSettled: () => {
      for (const key of ["document", "documents", "search"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}

function Saving({ text, draft, pending, onSave, onCancel }: { text: DocumentText | undefined; draft: string; pending: boolean; onSave: (edits: ReturnType<typeof editsOf>) => void; onCancel: () => void }) {
  const before = text?.text.trimEnd() ?? "";
  const edits = editsOf(before, draft.trimEnd(), text?.start ?? 0);
  return (
    <>
      <span className="self-center tabular-nums" aria-live="polite">
        {t("{n} places changed", { n: edits.length })}
      </span>
      <Button look="quiet" disabled={pending} onClick={onCancel}>
        {t("Cancel")}
      </Button>
      <Button look="primary" disabled={pending || edits.length === 0} onClick={() => onSave(edits)}>
        {pending ? t("Saving…") : t("Save")}
      </Button>
    </>
  );
}

/** The text with a wavy line under what was corrected, which says what was read there. */
function Read({ text, all }: { text: DocumentText; all: readonly TextCorrection[] }) {
  const shown: ReactNode[] = [];
  let rest = text.text;
  let at = text.start;
  for (const one of all) {
    if (one.start === null || one.end === null || one.start < at || one.end > text.end) continue;
    const [before, inside, after] = splitAround(rest, one.start - at, one.end - at);
    shown.push(
      before,
      <ins key={one.n} title={t("Read as “{before}”", { before: one.before })} className="underline decoration-accent decoration-wavy underline-offset-4">
        {inside}
      </ins>,
    );
    [rest, at] = [after, one.end];
  }
  return (
    <div data-testid="page-text" className="font-serif text-[0.9375rem] leading-6 whitespace-pre-wrap text-ink [overflow-wrap:anywhere]">
      {shown}
      {rest}
    </div>
  );
}

function Line({ one, busy, onShow, onUndo }: { one: TextCorrection; busy: boolean; onShow: (() => void) | null; onUndo: () => void }) {
  return (
    <li className="flex flex-wrap items-center gap-x-2 gap-y-1 py-1.5">
      <span className="min-w-0 flex-1 text-ink [overflow-wrap:anywhere]">
        <del className="text-muted">{one.before}</del> → <ins className="no-underline">{one.text}</ins>{" "}
        {!one.placed && (
          <Tag tone="warn" title={t("This place is read otherwise now; the correction is kept and does nothing.")}>
            {t("fits nowhere now")}
          </Tag>
        )}
        <span className="block text-2xs text-muted">
          {onShow !== null && one.page !== null && (
            <>
              <button type="button" className="underline underline-offset-2 hover:text-ink" onClick={onShow}>
                {t("Page {number}", { number: one.page })}
              </button>
              {" · "}
            </>
          )}
          {!one.author.startsWith("(") && `${one.author} · `}
          {ago(one.created_at)}
        </span>
      </span>
      <Button look="quiet" icon="undo" disabled={busy} onClick={onUndo} aria-label={t("Undo: {before} stands there again", { before: one.before })}>
        {t("Undo")}
      </Button>
    </li>
  );
}
