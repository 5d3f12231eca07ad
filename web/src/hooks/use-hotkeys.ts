import { useEffect, useRef } from "react";

/** Keys as the help sheet writes them: "/", "?", "g a" (one after the other), "Escape". */
export type Hotkeys = Readonly<Record<string, () => void>>;

/** A second key of a pair counts when it follows within this time, in milliseconds. */
const PAIR_MS = 900;

/**
 * Call actions for keys typed outside of fields. Escape also works inside them. Keys with Ctrl, Alt or Meta belong to the browser.
 */
export function useHotkeys(hotkeys: Hotkeys): void {
  const latest = useRef(hotkeys);
  useEffect(() => {
    latest.current = hotkeys;
  });
  useEffect(() => {
    let first: { key: string; at: number } | null = null;
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return;
      if (isField(event.target) && event.key !== "Escape") return;
      if (document.querySelector("dialog[open]") !== null) return;
      const pair = first !== null && event.timeStamp - first.at < PAIR_MS ? `${first.key} ${event.key}` : null;
      const action = (pair === null ? undefined : latest.current[pair]) ?? latest.current[event.key];
      first = { key: event.key, at: event.timeStamp };
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "file"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}
