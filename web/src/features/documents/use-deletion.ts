import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "@/api/http";
import type { DeleteRecord, DocumentRecord } from "@/api/types";
import { same, useWorkspace } from "@/hooks/use-workspace";

/** How long a deletion can be taken back, in seconds. */
export const GRACE_S = 12;

export interface Deletion {
  /** The document that was deleted last and can still come back. */
  undoable: DocumentRecord | null;
  error: Error | null;
  remove: (document: DocumentRecord) => void;
  undo: () => void;
  dismiss: () => void;
}

/** Delete with a grace, undo within it. The server hides at once and purges when the grace is over. */
export function useDeletion(): Deletion {
  const client = useQueryClient();
  const { scope, toggle } = useWorkspace();
  const [undoable, setUndoable] = useState<DocumentRecord | null>(null);
  const refresh = (): void => {
    for (const key of ["documents", "libraries", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
  };
  const removal = useMutation({
    mutationFn: (document: DocumentRecord) =>
      call<DeleteRecord>("DELETE", `api/v1/papers/${encodeURIComponent(document.doc_id)}`, undefined, { library: document.library, grace_s: GRACE_S }),
    onSuccess: (_, document) => {
      setUndoable(document);
      const ticked = scope.find((d) => same(d, document));
      if (ticked !== undefined) toggle(ticked);
    },
    onSettled: refresh,
  });
  const restoring = useMutation({
    mutationFn: (document: DocumentRecord) => call("POST", `api/v1/papers/${encodeURIComponent(document.doc_id)}/restore`, undefined, { library: document.library }),
    onSuccess: () => setUndoable(null),
    onSettled: refresh,
  });
  useEffect(() => {
    if (undoable === null) return undefined;
    const timer = setTimeout(() => setUndoable(null), GRACE_S * 1000);
    return () => clearTimeout(timer);
  }, [undoable]);
  return {
    undoable,
    error: removal.error ?? restoring.error,
    remove: (document) => removal.mutate(document),
    undo: () => {
      if (undoable !== null) restoring.mutate(undoable);
    },
    dismiss: () => {
      setUndoable(null);
      removal.reset();
      restoring.reset();
    },
  };
}
