import { useStore } from "@/hooks/use-store";
import { Store } from "@/lib/store";

/** A conversation, or an answer of one, that this browser keeps at the top. */
export interface Pin {
  conversation: string;
  /** Null pins the whole conversation. */
  answer: string | null;
  title: string;
}

const SLOT = "documind.pins.1";

function read(): readonly Pin[] {
  try {
    return JSON.parse(localStorage.getItem(SLOT) ?? "[]") as Pin[];
  } catch {
    return [];
  }
}

const pins = new Store<readonly Pin[]>(typeof localStorage === "undefined" ? [] : read());

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (event.key === SLOT) pins.set(read);
  });
}

/** What is pinned, newest first, and a way to pin or let go. */
export function usePins(): { pins: readonly Pin[]; isPinned: (one: Omit<Pin, "title">) => boolean; toggle: (pin: Pin) => void } {
  const kept = useStore(pins);
  const same = (a: Omit<Pin, "title">, b: Omit<Pin, "title">): boolean => a.conversation === b.conversation && a.answer === b.answer;
  return {
    pins: kept,
    isPinned: (one) => kept.some((pin) => same(pin, one)),
    toggle: (pin) => {
      pins.set((was) => (was.some((one) => same(one, pin)) ? was.filter((one) => !same(one, pin)) : [pin, ...was]));
      localStorage.setItem(SLOT, JSON.stringify(pins.get()));
    },
  };
}
