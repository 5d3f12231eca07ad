import type { Library } from "@/api/types";
import type { Workspace } from "@/hooks/use-workspace";

/** What `view_url` of a source asks for: `?library=&doc=&revision=&start=&end=` opens that span. */
export function linkedTarget(search: string): Partial<Workspace> {
  const query = new URLSearchParams(search);
  const doc = query.get("doc");
  const library = query.get("library");
  if (doc === null || !isLibrary(library)) return {};
  const start = number(query.get("start")) ?? 0;
  return {
    library,
    chosen: true,
    pane: "sources",
    reader: { library, doc_id: doc, title: doc, revision: number(query.get("revision")), start, end: number(query.get("end")) ?? start, page: null },
  };
}

function isLibrary(value: string | null): value is Library {
  return value === "public" || value === "papers";
}

function number(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}
