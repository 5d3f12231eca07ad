import { useSyncExternalStore } from "react";

export const PAGES = ["ask", "search", "check", "inspect", "evaluate", "status"] as const;
export type PageName = (typeof PAGES)[number];

export interface Route {
  page: PageName;
  /** What follows the page name: an answer id, a report id, a conversation. */
  argument: string | null;
  /** What follows that: the answer of the conversation that is looked at. */
  detail: string | null;
}

/** `#/ask/abc/def` -> ask, abc, def. Anything unknown is the Ask page. */
export function parseHash(hash: string): Route {
  const [name = "", argument = "", detail = ""] = hash.replace(/^#\/?/, "").split("/");
  const page = PAGES.find((one) => one === name) ?? "ask";
  return { page, argument: argument === "" ? null : decoded(argument), detail: detail === "" ? null : decoded(detail) };
}

/** What is not percent-encoded as it should be stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Address of a page; null arguments are left out. */
export function hrefOf(page: PageName, ...rest: readonly (string | null)[]): string {
  return ["#", page, ...rest.filter((one) => one !== null).map(encodeURIComponent)].join("/");
}

export function goTo(page: PageName, ...rest: readonly (string | null)[]): void {
  window.location.hash = hrefOf(page, ...rest);
}

/** Give what is shown its address, without a step that Back would return to. */
export function nameHere(page: PageName, ...rest: readonly (string | null)[]): void {
  window.history.replaceState(null, "", hrefOf(page, ...rest));
  window.dispatchEvent(new Event("hashchange"));
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
