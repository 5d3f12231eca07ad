import type { Mode, Scope } from "@/api/types";
import { useStore } from "@/hooks/use-store";
import type { Language } from "@/lib/language";
import { Store } from "@/lib/store";

/** How this browser begins; null leaves it to the server. */
export interface Preferences {
  library: Scope | null;
  mode: Mode | null;
  language: Language | null;
}

const SLOT = "documind.preferences.1";
const NONE: Preferences = { library: null, mode: null, language: null };

function read(): Preferences {
  try {
    return { ...NONE, ...(JSON.parse(localStorage.getItem(SLOT) ?? "{}") as Partial<Preferences>) };
  } catch {
    return NONE;
  }
}

const kept = new Store<Preferences>(typeof localStorage === "undefined" ? NONE : read());

export function preferences(): Preferences {
  return kept.get();
}

export function usePreferences(): Preferences & { prefer: (change: Partial<Preferences>) => void } {
  const now = useStore(kept);
  return {
    ...now,
    prefer: (change) => {
      kept.set((was) => ({ ...was, ...change }));
      localStorage.setItem(SLOT, JSON.stringify(kept.get()));
    },
  };
}
