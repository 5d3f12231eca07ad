import { useQuery } from "@tanstack/react-query";
import type { PDFDocumentProxy } from "pdfjs-dist";
import { useEffect, useRef, useState } from "react";
import { pageBoxes } from "@/api/queries";
import type { Library } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { IconButton } from "@/components/ui/button";
import { Failure, Skeleton } from "@/components/ui/states";
import type { ReaderTarget } from "@/hooks/use-workspace";
import { percent } from "@/lib/format";
import { t } from "@/lib/language";
import { openPdf } from "./pdf-document";
import { PdfPage, type PageSize } from "./pdf-page";

const ZOOMS = [0.6, 0.8, 1, 1.25, 1.5, 2] as const;

/** The pages of a PDF, drawn as they come into sight, the cited span marked by its boxes. */
export function PdfView({ target }: { target: ReaderTarget }) {
  const pdf = usePdf(target.library, target.doc_id, target.revision);
  if (pdf.isPending) {
    return (
      <div className="p-4">
        <Skeleton lines={8} />
      </div>
    );
  }
  if (pdf.isError) {
    return (
      <div className="p-3">
        <Failure error={pdf.error} onRetry={() => void pdf.refetch()} what={t("The pages could not be drawn.")} />
      </div>
    );
  }
  return <Pages document={pdf.data.document} size={pdf.data.size} target={target} />;
}

/** One page, at first as wide as its place, which stays in sight beside a long text. */
export function PdfSheet({ library, docId, revision, page }: { library: Library; docId: string; revision: number; page: number }) {
  const pdf = usePdf(library, docId, revision);
  const [place, width] = useWidth();
  const [zoom, setZoom] = useState(ZOOMS.indexOf(1));
  return (
    <div className="flex min-w-0 flex-col gap-1 @xl:sticky @xl:top-12 @xl:self-start">
      <Zoom zoom={zoom} onZoom={setZoom} />
      <div ref={place} className="max-h-[75vh] overflow-auto border border-line bg-sunken" tabIndex={0} role="region" aria-label={t("Page of the document")}>
        {pdf.isError && <Failure error={pdf.error} onRetry={() => void pdf.refetch()} what={t("The pages could not be drawn.")} />}
        {pdf.data !== undefined && width > 0 && (
          <PdfPage key={page} document={pdf.data.document} number={page} size={pdf.data.size} scale={((width - 1) / pdf.data.size.width) * (ZOOMS[zoom] ?? 1)} boxes={null} />
        )}
      </div>
    </div>
  );
}

function usePdf(library: Library, docId: string, revision: number | null) {
  return useQuery({
    queryKey: ["pdf", library, docId, revision],
    queryFn: async ({ signal }) => {
      const document = await openPdf(library, docId, revision, signal);
      const first = (await document.getPage(1)).getViewport({ scale: 1 });
      return { document, size: { width: first.width, height: first.height } };
    },
    staleTime: Infinity,
    gcTime: 60_000,
    structuralSharing: false,
  });
}

/** The width that an element has inside, in pixels; 0 until it is known. */
function useWidth() {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return [place, width] as const;
}

function Pages({ document, size, target }: { document: PDFDocumentProxy; size: PageSize; target: ReaderTarget }) {
  const [scroller, width] = useWidth();
  const [zoom, setZoom] = useState(ZOOMS.indexOf(1));
  const spanned = target.end > target.start;
  const boxes = useQuery({ ...pageBoxes(target.library, target.doc_id, target.revision, target.start, target.end), enabled: spanned });
  const onPage = boxes.data?.[0]?.page ?? (boxes.isPending && spanned ? null : target.page);
  const scale = width === 0 ? 0 : ((width - 32) / size.width) * (ZOOMS[zoom] ?? 1);
  useEffect(() => {
    if (onPage === null || scale === 0) return;
    const page = scroller.current?.querySelector(`[data-page="${onPage}"]`);
    const mark = page?.querySelector("[data-highlight]");
    (mark ?? page)?.scrollIntoView({ block: mark === null || mark === undefined ? "start" : "center", inline: "nearest" });
    // Scroll when the place changes, not when the pane is resized.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [onPage, boxes.data, target.start, target.end, scale === 0]);
  return (
    <>
      {boxes.isError && (
        <Banner tone="warn" className="m-2">
          {t("The quote could not be placed on the page; the Text view shows it.")}
        </Banner>
      )}
      <div ref={scroller} className="relative min-h-0 flex-1 overflow-auto bg-sunken" tabIndex={0} role="region" aria-label={t("Pages of the document")}>
        {scale > 0 && (
          <div className="flex w-max min-w-full flex-col items-center gap-3 p-4">
            {Array.from({ length: document.numPages }, (_, i) => (
              <PdfPage key={i} document={document} number={i + 1} size={size} scale={scale} boxes={boxes.data?.find((b) => b.page === i + 1) ?? null} />
            ))}
          </div>
        )}
      </div>
      <div className="flex shrink-0 items-center justify-between border-t border-line px-2 py-1 text-2xs text-muted">
        <span className="tabular-nums">
          {t("{n} pages", { n: document.numPages })}
          {onPage !== null && `, ${t("quote on page {page}", { page: onPage })}`}
        </span>
        <Zoom zoom={zoom} onZoom={setZoom} />
      </div>
    </>
  );
}

function Zoom({ zoom, onZoom }: { zoom: number; onZoom: (zoom: number) => void }) {
  return (
    <span className="flex items-center gap-1 text-2xs text-muted">
      <IconButton icon="minus" label={t("Smaller")} onClick={() => onZoom(zoom - 1)} disabled={zoom === 0} />
      <span className="w-9 text-center tabular-nums">{percent(ZOOMS[zoom] ?? 1)}</span>
      <IconButton icon="plus" label={t("Larger")} onClick={() => onZoom(zoom + 1)} disabled={zoom === ZOOMS.length - 1} />
    </span>
  );
}
