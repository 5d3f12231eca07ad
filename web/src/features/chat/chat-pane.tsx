import { useEffect, useRef, type ReactNode } from "react";
import { IconButton } from "@/components/ui/button";
import { Guarded } from "@/components/ui/guarded";
import { useChat } from "@/hooks/use-chat";
import { useWorkspace } from "@/hooks/use-workspace";
import { Composer } from "./composer";
import { ConversationsMenu } from "./conversations-menu";
import { ExchangeView } from "./exchange-view";
import { Suggestions } from "./suggestions";

/** Middle pane: the conversation and the question box. `empty` stands where answers will be. */
export function ChatPane({ empty }: { empty: ReactNode }) {
  const { exchanges, ask, reset } = useChat();
  const { documentsShown, toggleDocuments } = useWorkspace();
  const scroller = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  const last = exchanges.at(-1);
  useEffect(() => {
    follow.current = true;
  }, [last?.id]);
  useEffect(() => {
    const box = scroller.current;
    if (box !== null && follow.current) box.scrollTop = box.scrollHeight;
  }, [last?.id, last?.quote, last?.reading, last?.draft, last?.state]);
  return (
    <section aria-label="Chat" className="flex h-full min-h-0 flex-col bg-surface">
      <div className="flex h-10 shrink-0 items-center gap-0.5 border-b border-line px-2">
        <IconButton icon="panel" label={documentsShown ? "Hide documents" : "Show documents"} pressed={documentsShown} onClick={toggleDocuments} className="max-lg:hidden" />
        <ConversationsMenu />
        <span className="flex-1" />
        {exchanges.length > 0 && (
          <button type="button" onClick={reset} className="rounded-md px-2 py-1 text-xs text-muted hover:bg-sunken hover:text-ink">
            New conversation
          </button>
        )}
      </div>
      <div
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        className="min-h-0 flex-1 overflow-y-auto"
        onScroll={(event) => {
          const box = event.currentTarget;
          follow.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
        }}
      >
        <div className="mx-auto max-w-[46rem] px-5">
          {exchanges.length === 0
            ? empty
            : exchanges.map((exchange) => (
                <Guarded key={exchange.id} what="This answer">
                  <ExchangeView exchange={exchange} onAskAgain={ask} />
                </Guarded>
              ))}
        </div>
      </div>
      <div className="mx-auto w-full max-w-[48rem] shrink-0 px-3 pb-3">
        {exchanges.length === 0 && <Suggestions />}
        <Composer />
      </div>
    </section>
  );
}
