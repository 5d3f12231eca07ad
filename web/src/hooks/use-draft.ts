import type { CheckReport } from "@/api/types";
import { useStore } from "@/hooks/use-store";
import { Store } from "@/lib/store";

/** A text that is checked, what it is checked against, and what came of it. */
export interface Draft {
  text: string;
  /** Null: the library. */
  source: string | null;
  report: CheckReport | null;
}

const SLOT = "documind.draft.1";
const EMPTY: Draft = { text: "", source: null, report: null };

function read(): Draft {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(SLOT) ?? "{}") as Partial<Draft>) };
  } catch {
    return EMPTY;
  }
}

const draft = new Store<Draft>(typeof sessionStorage === "undefined" ? EMPTY : read());

/** The draft of this tab; it survives a look at another page and a reload. */
export function useDraft(): Draft & { change: (part: Partial<Draft>) => void } {
  const now = useStore(draft);
  return {
    ...now,
    change: (part) => {
      draft.set((was) => ({ ...was, ...part }));
      try {
        sessionStorage.setItem(SLOT, JSON.stringify(draft.get()));
      } catch {
        // A draft larger than the browser keeps stays for as long as the page does.
      }
    },
  };
}
