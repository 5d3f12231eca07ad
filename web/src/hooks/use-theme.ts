import { useSyncExternalStore } from "react";
import type { Message } from "@/lib/language";

export type Theme = "system" | "light" | "dark";
export const THEME_NAMES: Record<Theme, Message> = { system: "As the system", light: "Light", dark: "Dark" };
const SLOT = "documind.theme";
const listeners = new Set<() => void>();

function read(): Theme {
  const value = localStorage.getItem(SLOT);
  return value === "light" || value === "dark" ? value : "system";
}

/** Put the stored theme on the page; called before the first paint. */
export function applyTheme(): void {
  const theme = read();
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(SLOT, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, read);
}
