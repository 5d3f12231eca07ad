import { useSyncExternalStore } from "react";

export const PAGES = ["ask", "search", "inspect", "evaluate", "status"] as const;
export type PageName = (typeof PAGES)[number];

export interface Route {
  page: PageName;
  /** What follows the page name: an answer id, a report id. */
  argument: string | null;
}

/** `#/inspect/abc` -> inspect, abc. Anything unknown is the Ask page. */
export function parseHash(hash: string): Route {
  const [name = "", ...rest] = hash.replace(/^#\/?/, "").split("/");
  const page = PAGES.find((one) => one === name) ?? "ask";
  const argument = rest.join("/");
  return { page, argument: argument === "" ? null : decoded(argument) };
}

/** What is not percent-encoded as it should be stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function hrefOf(page: PageName, argument?: string): string {
  return argument === undefined ? `#/${page}` : `#/${page}/${encodeURIComponent(argument)}`;
}

export function goTo(page: PageName, argument?: string): void {
  window.location.hash = hrefOf(page, argument);
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

/** Where the page is; the hash, so that any mount path works. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return parseHash(hash);
}
