import type { QueryClient } from "@tanstack/react-query";

/** What another tab may have changed. */
const SHARED = ["conversations", "documents", "tags", "collections", "libraries", "suggestions", "models", "health", "answers"];

interface Session {
  follow: (conversationId: string, client: QueryClient) => Promise<void>;
}

/** Tabs of one browser tell each other what changed, so that they show the same. */
class Tabs {
  readonly #channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("documind");

  /** Say that something changed, and in which conversation. */
  tell(conversationId: string | null): void {
    this.#channel?.postMessage(conversationId);
  }

  /** Ask again for what another tab changed, and tell the others of every change made here. */
  listen(client: QueryClient, session: Session): void {
    client.getMutationCache().subscribe((event) => {
      if (event.type === "updated" && event.action.type === "success") this.tell(null);
    });
    this.#channel?.addEventListener("message", ({ data }) => {
      for (const key of SHARED) void client.invalidateQueries({ queryKey: [key] });
      if (typeof data === "string") void session.follow(data, client).catch(() => undefined);
    });
  }
}

export const tabs = new Tabs();
