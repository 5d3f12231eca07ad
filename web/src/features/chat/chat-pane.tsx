import { useCallback, type ReactNode } from "react";
import { IconButton } from "@/components/ui/button";
import { Guarded } from "@/components/ui/guarded";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { goTo } from "@/hooks/use-route";
import { useWorkspace } from "@/hooks/use-workspace";
import { Composer } from "./composer";
import { ConversationsMenu } from "./conversations-menu";
import { ExchangeView } from "./exchange-view";
import { SaveConversation } from "./save-conversation";
import { Suggestions } from "./suggestions";
import { useReadingPlace } from "./use-reading-place";

/** Middle pane: the conversation and the question box. `empty` stands where answers will be. */
export function ChatPane({ empty }: { empty: ReactNode }) {
  const { exchanges, opening, ask, open, reset, setTyped } = useChat();
  const { documentsShown, toggleDocuments } = useWorkspace();
  const { scroller, onScroll } = useReadingPlace();
  const edit = useCallback(
    (question: string): void => {
      setTyped(question);
      document.getElementById("question")?.focus();
    },
    [setTyped],
  );
  const fresh = exchanges.length === 0 && opening === null;
  return (
    <section aria-label="Chat" className="flex h-full min-h-0 flex-col bg-surface">
      <div className="flex h-10 shrink-0 items-center gap-0.5 border-b border-line px-2">
        <IconButton icon="panel" label={documentsShown ? "Hide documents" : "Show documents"} pressed={documentsShown} onClick={toggleDocuments} className="max-lg:hidden" />
        <ConversationsMenu />
        <span className="flex-1" />
        {exchanges.length > 0 && <SaveConversation exchanges={exchanges} />}
        {!fresh && (
          <button
            type="button"
            onClick={() => {
              reset();
              goTo("ask");
            }}
            className="rounded-md px-2 py-1 text-xs text-muted hover:bg-sunken hover:text-ink"
          >
            New conversation
          </button>
        )}
      </div>
      <div ref={scroller} tabIndex={0} role="region" aria-label="Conversation" className="min-h-0 flex-1 overflow-y-auto" onScroll={onScroll}>
        <div className="mx-auto max-w-[46rem] px-5">
          {fresh && empty}
          {opening !== null && opening.error === null && exchanges.length === 0 && (
            <div className="py-10">
              <Skeleton label="Opening the conversation" />
            </div>
          )}
          {opening !== null && opening.error !== null && (
            <div className="py-10">
              <Failure error={opening.error} what="This conversation could not be opened." onRetry={() => void open(opening.id)} />
            </div>
          )}
          {exchanges.map((exchange, at) => (
            <Guarded key={exchange.id} what="This answer">
              <ExchangeView exchange={exchange} onAskAgain={ask} onEdit={edit} newest={at === exchanges.length - 1} />
            </Guarded>
          ))}
        </div>
      </div>
      <div className="mx-auto w-full max-w-[48rem] shrink-0 px-3 pb-3">
        {fresh && <Suggestions />}
        <Composer />
      </div>
    </section>
  );
}
