import { send } from "@/api/http";
import type { SourceRecord } from "@/api/types";
import type { Mark } from "@/lib/highlights";

/** A copy of a document's PDF in which spans are highlighted. */
export async function highlightedCopy(source: SourceRecord, marks: readonly Mark[]): Promise<Blob> {
  const init = { method: "POST", body: JSON.stringify({ marks }), headers: { "Content-Type": "application/json" } };
  const where = { library: source.library, revision: source.revision };
  return (await send(`api/v1/documents/${encodeURIComponent(source.doc_id)}/highlights`, init, where)).blob();
}
