import { useSyncExternalStore } from "react";

export const PAGES = ["ask", "search", "check", "inspect", "evaluate", "status", "settings"] as const;
export type PageName = (typeof PAGES)[number];

export interface Route {
  page: PageName;
  /** What follows the page name: an answer id, a report id, a conversation, a search. */
  argument: string | null;
  /** What follows that: the answer of the conversation that is looked at. */
  detail: string | null;
  /** What stands open next to the page, as `hooks/use-view-address` writes it. */
  view: string;
}

/** `#/ask/abc/def?view` -> ask, abc, def, view. Anything unknown is the Ask page. */
export function parseHash(hash: string): Route {
  const [path = "", view = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name = "", argument = "", detail = ""] = path.split("/");
  const page = PAGES.find((one) => one === name) ?? "ask";
  return { page, argument: argument === "" ? null : decoded(argument), detail: detail === "" ? null : decoded(detail), view };
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

/** Give what is shown its address, as a step that Back returns from or in place of the present one; the view stays. */
export function nameHere(how: "push" | "replace", page: PageName, ...rest: readonly (string | null)[]): void {
  move(how, hrefOf(page, ...rest), parseHash(window.location.hash).view);
}

/** Name what stands open next to the page. */
export function nameView(how: "push" | "replace", view: string): void {
  move(how, window.location.hash.split("?")[0] || hrefOf("ask"), view);
}

function move(how: "push" | "replace", path: string, view: string): void {
  const address = view === "" ? path : `${path}?${view}`;
  if (how === "push") window.history.pushState(null, "", address);
  else window.history.replaceState(null, "", address);
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

/** The token of the shared answer that the address names; null where it names a page. */
export function useShared(): string | null {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return /^#\/shared\/([^/?]+)/.exec(hash)?.[1] ?? null;
}
