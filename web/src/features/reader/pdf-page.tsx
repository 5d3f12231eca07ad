import { RenderingCancelledException, type PDFDocumentProxy } from "pdfjs-dist";
import { useEffect, useRef, useState } from "react";
import type { PageBoxes } from "@/api/types";
import { t } from "@/lib/language";

export interface PageSize {
  width: number;
  height: number;
}

interface Props {
  document: PDFDocumentProxy;
  number: number;
  /** Size of the first page in points; stands in until this page is known. */
  size: PageSize;
  scale: number;
  boxes: PageBoxes | null;
}

/** One page: an empty sheet until it comes near, then a canvas, with the quote's boxes above it. */
export function PdfPage({ document, number, size, scale, boxes }: Props) {
  const sheet = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [near, setNear] = useState(false);
  const [own, setOwn] = useState<PageSize | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const node = sheet.current;
    if (node === null) return undefined;
    const observer = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), { rootMargin: "800px 0px" });
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!near) return undefined;
    let stop = (): void => undefined;
    let gone = false;
    const draw = async (): Promise<void> => {
      const page = await document.getPage(number);
      const target = canvas.current;
      if (gone || target === null) return;
      const natural = page.getViewport({ scale: 1 });
      setOwn({ width: natural.width, height: natural.height });
      // Draw for the screen's real pixels, capped so that a zoomed page stays under 16 megapixels.
      const density = Math.min(window.devicePixelRatio || 1, Math.sqrt(16e6 / (natural.width * natural.height)) / scale);
      const viewport = page.getViewport({ scale: scale * density });
      target.width = Math.floor(viewport.width);
      target.height = Math.floor(viewport.height);
      const task = page.render({ canvas: target, viewport });
      stop = () => task.cancel();
      await task.promise;
    };
    draw().catch((reason: unknown) => {
      if (!gone && !(reason instanceof RenderingCancelledException)) setError(reason instanceof Error ? reason.message : String(reason));
    });
    return () => {
      gone = true;
      stop();
    };
  }, [near, document, number, scale]);
  const { width, height } = own ?? size;
  return (
    <div ref={sheet} data-page={number} className="relative bg-[#fff] shadow-[0_0_0_1px_var(--line),0_2px_8px_rgb(0_0_0/0.12)]" style={{ width: width * scale, height: height * scale }}>
      {near && <canvas ref={canvas} role="img" aria-label={t("Page {number}", { number })} className="absolute inset-0 size-full" />}
      {boxes?.rects.map(([x0, y0, x1, y1], i) => (
        <div
          key={i}
          data-highlight=""
          className="absolute rounded-[2px] bg-[#ffd83d] mix-blend-multiply"
          style={{
            left: `${(x0 / boxes.width) * 100}%`,
            top: `${(y0 / boxes.height) * 100}%`,
            width: `${((x1 - x0) / boxes.width) * 100}%`,
            height: `${((y1 - y0) / boxes.height) * 100}%`,
          }}
        />
      ))}
      {error !== null && <p className="absolute inset-x-4 top-4 text-sm text-[#96281c]">{t("Page {number} could not be drawn: {error}", { number, error })}</p>}
    </div>
  );
}
