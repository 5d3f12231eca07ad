import { address, ApiError, authorization, problemOf, Unreachable } from "@/api/http";
import { keyRefused } from "@/api/key";
import type { IngestResponse, Library } from "@/api/types";

/**
 * Send one file; `wait` says until when: `false` until the server holds it, `text` until it is found by search (vectors follow by themselves).
 *
 * XMLHttpRequest, because fetch does not tell how much of a body is on its way. `onSent` gets the share in [0, 1].
 */
export function uploadFile(
  file: File,
  library: Library,
  sourceKey: string | null,
  wait: "false" | "text",
  onSent: (share: number) => void,
  signal: AbortSignal,
): Promise<IngestResponse> {
  const form = new FormData();
  form.append("file", file, file.name);
  form.append("library", library);
  if (sourceKey !== null) form.append("source_key", sourceKey);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address("api/v1/ingest", { wait }));
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onSent(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      const body = parse(request.responseText);
      if (body !== null) {
        resolve(body);
        return;
      }
      if (request.status === 401) keyRefused();
      reject(new ApiError(problemOf(request.status, request.responseText)));
    });
    request.addEventListener("error", () => reject(new Unreachable(null)));
    request.addEventListener("abort", () => reject(new DOMException("Upload stopped", "AbortError")));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(form);
  });
}

/** An ingest reply of any status: a file that failed has its reason inside. */
function parse(text: string): IngestResponse | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "documents" in value ? (value as IngestResponse) : null;
  } catch {
    return null;
  }
}
