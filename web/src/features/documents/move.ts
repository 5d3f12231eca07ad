import { useMutation, useQueryClient } from "@tanstack/react-query";
import { call, get, send } from "@/api/http";
import type { CorrectionList, DocumentRecord, Library } from "@/api/types";
import { uploadFile } from "@/api/upload";
import { GRACE_S } from "@/hooks/use-deletion";
import { same, type ScopedDocument, useWorkspace } from "@/hooks/use-workspace";
import { asRead, type Edit } from "@/lib/corrections";
import { LIBRARY_NAMES } from "@/lib/format";
import { t } from "@/lib/language";

export function otherLibrary(library: Library): Library {
  return library === "papers" ? "public" : "papers";
}

const correctionsOf = (doc_id: string): string => `api/v1/documents/${encodeURIComponent(doc_id)}/corrections`;
const pathOf = (doc_id: string): string => `api/v1/papers/${encodeURIComponent(doc_id)}`;

/** Add a document's original to the other library with what was said of it, then delete it here; it stays where that fails. */
async function move({ doc_id, library, title }: ScopedDocument): Promise<void> {
  const to = otherLibrary(library);
  const { has_original, filename, source_key, authors, year, tags, metadata } = await get<DocumentRecord>(pathOf(doc_id), { library });
  if (!has_original) throw new Error(t("Of “{title}” only the text is kept: it cannot be moved.", { title }));
  if (await isThere(source_key, to)) throw new Error(t("{library} has a document “{name}” already.", { library: t(LIBRARY_NAMES[to]), name: source_key }));
  const original = await (await send(`api/v1/documents/${encodeURIComponent(doc_id)}/file`, {}, { library })).blob();
  const file = new File([original], filename.split("/").at(-1) ?? filename);
  const outcome = (await uploadFile(file, to, source_key, "text", () => undefined, new AbortController().signal)).documents[0];
  if (outcome?.doc_id == null) throw new Error(outcome?.reason ?? t("It failed without a reason"));
  const moved = await call<DocumentRecord>("PATCH", pathOf(outcome.doc_id), { title, authors, ...(year === null ? {} : { year }), tags, metadata }, { library: to });
  await correct(moved, asRead((await get<CorrectionList>(correctionsOf(doc_id), { library })).corrections));
  await call("DELETE", pathOf(doc_id), undefined, { library, grace_s: GRACE_S });
}

/** Make corrections of what was read, from the end on, so that those before keep their places; a request takes 500. */
async function correct({ doc_id, library, revision }: DocumentRecord, edits: Edit[]): Promise<void> {
  let live = revision;
  for (let end = edits.length; end > 0; end -= MOST_EDITS) {
    const body = { revision: live, corrections: edits.slice(Math.max(0, end - MOST_EDITS), end) };
    live = (await call<CorrectionList>("POST", correctionsOf(doc_id), body, { library })).revision;
  }
}

const MOST_EDITS = 500;

async function isThere(source_key: string, library: Library): Promise<boolean> {
  return get<DocumentRecord>(pathOf(source_key), { library }).then(
    () => true,
    () => false,
  );
}

/** Moves documents one after the other; what was moved before one failed stays moved. */
export function useMove() {
  const client = useQueryClient();
  const { scope, scopeTo } = useWorkspace();
  return useMutation({
    mutationFn: async (documents: readonly ScopedDocument[]) => {
      for (const one of documents) await move(one);
    },
    onSuccess: (_, documents) => scopeTo(scope.filter((ticked) => !documents.some((one) => same(one, ticked)))),
    onSettled: () => {
      for (const key of ["documents", "libraries", "suggestions", "tags"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}
