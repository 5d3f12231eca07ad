import { getDocument, GlobalWorkerOptions, type PDFDocumentProxy } from "pdfjs-dist";
import { address, send } from "@/api/http";
import type { Library } from "@/api/types";

let worker: Worker | null = null;

/** Fetch a document's original with the key and open it. pdf.js gets bytes, never an address, and sends no request itself. */
export async function openPdf(library: Library, docId: string, revision: number | null, signal: AbortSignal): Promise<PDFDocumentProxy> {
  const response = await send(`api/v1/documents/${encodeURIComponent(docId)}/file`, { signal }, { library, revision });
  const data = new Uint8Array(await response.arrayBuffer());
  worker ??= new Worker(new URL("pdfjs-dist/build/pdf.worker.min.mjs", import.meta.url), { type: "module" });
  GlobalWorkerOptions.workerPort = worker;
  return getDocument({
    data,
    cMapUrl: address("pdfjs/cmaps/"),
    cMapPacked: true,
    standardFontDataUrl: address("pdfjs/standard_fonts/"),
    // The content security policy has no 'wasm-unsafe-eval'; pdf.js has a decoder in JavaScript for each.
    useWasm: false,
    enableXfa: false,
    stopAtErrors: false,
  }).promise;
}
