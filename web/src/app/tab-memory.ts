import type { ChatSession, Controls, Place } from "@/hooks/use-chat";
import type { Workspace } from "@/hooks/use-workspace";
import type { Store } from "@/lib/store";

/** One slot for each shape: what another version of the page kept is not read. */
const SLOT = "documind.tab.1";

interface TabMemory {
  workspace: Workspace;
  controls: Controls;
  typed: string;
  place: Place | null;
  left: string | null;
}

/** What this tab kept before it was loaded again; nothing in a new tab. */
export function recalled(): Partial<TabMemory> {
  try {
    return JSON.parse(sessionStorage.getItem(SLOT) ?? "{}") as Partial<TabMemory>;
  } catch {
    return {};
  }
}

/** Keep what a reload must not lose whenever the page is left or hidden. */
export function rememberOnLeaving(workspace: Store<Workspace>, session: ChatSession): void {
  const remember = (): void => {
    const { controls, typed, conversationId, left } = session.store.get();
    // A pill's focus names an answer of this load of the page.
    const memory: TabMemory = { workspace: { ...workspace.get(), focus: null }, controls, typed, place: session.place, left: conversationId ?? left };
    sessionStorage.setItem(SLOT, JSON.stringify(memory));
  };
  window.addEventListener("pagehide", remember);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") remember();
  });
}
