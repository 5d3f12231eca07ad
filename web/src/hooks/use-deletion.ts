import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";

/** How long a deletion can be taken back, in seconds. */
export const GRACE_S = 12;

interface Calls<T> {
  /** Deletes on the server with a grace of GRACE_S. */
  remove: (one: T) => Promise<unknown>;
  restore: (one: T) => Promise<unknown>;
  onRemoved: (one: T) => void;
  onRestored?: (one: T) => void;
  refresh: () => void;
}

export interface Deletion<T> {
  /** What was deleted last and can still come back. */
  undoable: T | null;
  error: Error | null;
  remove: (one: T) => void;
  undo: () => void;
  dismiss: () => void;
}

/** Delete with a grace, undo within it. The server hides at once and forgets when the grace is over. */
export function useDeletion<T>({ remove, restore, onRemoved, onRestored, refresh }: Calls<T>): Deletion<T> {
  const [undoable, setUndoable] = useState<T | null>(null);
  const removal = useMutation({
    mutationFn: remove,
    onSuccess: (_, one) => {
      setUndoable(one);
      onRemoved(one);
    },
    onSettled: refresh,
  });
  const restoring = useMutation({
    mutationFn: restore,
    onSuccess: (_, one) => {
      setUndoable(null);
      onRestored?.(one);
    },
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
    remove: (one) => removal.mutate(one),
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
