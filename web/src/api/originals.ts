import { send } from "@/api/http";
import type { DocumentRecord } from "@/api/types";
import { saveAs } from "@/lib/save-as";

/** Keep the file as it was added; fetched rather than linked to, because a link carries no key. */
export async function download({ doc_id, library, filename }: Pick<DocumentRecord, "doc_id" | "library" | "filename">): Promise<void> {
  const reply = await send(`api/v1/documents/${encodeURIComponent(doc_id)}/file`, {}, { library });
  saveAs(await reply.blob(), filename.split("/").at(-1) ?? filename);
}
