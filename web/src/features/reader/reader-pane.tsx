import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { download } from "@/api/originals";
import { documentRecord } from "@/api/queries";
import { FlagTag } from "@/components/flag-tag";
import { Banner } from "@/components/ui/banner";
import { Button, IconButton } from "@/components/ui/button";
import { Segmented } from "@/components/ui/field";
import { Failure, Skeleton } from "@/components/ui/states";
import { isNarrow } from "@/hooks/use-view-address";
import { type ReaderTarget, useWorkspace } from "@/hooks/use-workspace";
import { byline } from "@/lib/format";
import { t } from "@/lib/language";
import { CorrectView } from "./correct-view";
import { NoteLinks } from "./note-links";
import { TextView } from "./text-view";

// pdf.js is large and most documents are text: it is fetched with the first PDF.
const PdfView = lazy(async () => ({ default: (await import("./pdf-view")).PdfView }));

type View = "pages" | "text" | "correct";

/** The document behind a source, at the cited span: its pages when it is a PDF, else its text. */
export function ReaderPane({ target }: { target: ReaderTarget }) {
  const { read } = useWorkspace();
  const document = useQuery(documentRecord(target.library, target.doc_id));
  const [wanted, setWanted] = useState<View | null>(null);
  // Once it was opened it stays, so that a look at something else loses no words.
  const [correcting, setCorrecting] = useState(false);
  const record = document.data;
  const paged = record?.type === "pdf" && record.has_original;
  const title = record?.title ?? target.title;
  // A page of paper cannot be read on a phone: there the text comes first.
  const view = wanted ?? (paged && !isNarrow() ? "pages" : "text");
  return (
    <section aria-label={t("Document")} className="flex h-full min-h-0 flex-col border-l border-line bg-paper">
      <div className="flex min-h-10 shrink-0 items-center gap-2 border-b border-line py-1 pr-1.5 pl-1.5">
        <IconButton icon="left" label={t("Back to sources")} onClick={() => read(null)} />
        <div className="min-w-0 flex-1">
          <h2 className="truncate text-sm font-semibold" title={title}>
            {title}
          </h2>
          {document.data !== undefined && <p className="truncate text-2xs text-muted">{byline(document.data.authors, document.data.year) || document.data.filename}</p>}
        </div>
        <FlagTag flags={document.data?.flags} />
        {record?.has_original === true && <IconButton icon="save" label={t("Download the original")} onClick={() => void download(record)} />}
        {record?.has_original === true && (
          <Segmented
            label={t("Show")}
            value={view}
            onValue={(chosen) => {
              setWanted(chosen);
              if (chosen === "correct") setCorrecting(true);
            }}
            options={[
              ...(paged ? [{ value: "pages", label: t("Pages") } as const] : []),
              { value: "text", label: t("Text") },
              { value: "correct", label: t("Correct") },
            ]}
          />
        )}
      </div>
      {document.isPending && (
        <div className="p-4">
          <Skeleton />
        </div>
      )}
      {document.isError && (
        <div className="p-3">
          <Failure error={document.error} onRetry={() => void document.refetch()} />
        </div>
      )}
      {record !== undefined && <NoteLinks key={record.doc_id} note={record} />}
      {record !== undefined && target.revision !== null && target.revision < record.revision && view !== "correct" && (
        <Banner className="m-2" action={<Button look="quiet" onClick={() => read({ ...target, revision: record.revision, start: 0, end: 0 })}>{t("Show the text of now")}</Button>}>
          {t("The words of then: this document was read again, corrected or replaced since.")}
        </Banner>
      )}
      {record !== undefined && view === "text" && <TextView target={target} />}
      {record !== undefined && correcting && (
        <div className={view === "correct" ? "flex min-h-0 flex-1 flex-col" : "hidden"}>
          <CorrectView document={record} target={target} />
        </div>
      )}
      {document.data !== undefined && view === "pages" && (
        <Suspense fallback={<div className="p-4"><Skeleton /></div>}>
          <PdfView key={`${target.library}/${target.doc_id}/${target.revision}`} target={target} />
        </Suspense>
      )}
    </section>
  );
}
