import type { ReactNode } from "react";
import { Button, IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Guarded } from "@/components/ui/guarded";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { goTo } from "@/hooks/use-route";
import { useWorkspace } from "@/hooks/use-workspace";
import { t } from "@/lib/language";
import { Composer } from "./composer";
import { ExchangeView } from "./exchange-view";
import { SaveConversation } from "./save-conversation";
import { Suggestions } from "./suggestions";
import { useReadingPlace } from "./use-reading-place";

/** Middle pane: the conversation and the question box, which stands in the middle until something was asked. */
export function ChatPane({ above, below }: { above: ReactNode; below: ReactNode }) {
  const { exchanges, opening, ask, replace, show, goOn, open, reset } = useChat();
  const { sideShown, toggleSide } = useWorkspace();
  const { scroller, content, onScroll } = useReadingPlace();
  const fresh = exchanges.length === 0 && opening === null;
  return (
    <section aria-label={t("Chat")} className="flex h-full min-h-0 flex-col bg-surface">
      <div className={cx("flex h-10 shrink-0 items-center gap-0.5 px-2", fresh ? "max-lg:hidden" : "border-b border-line")}>
        <IconButton icon="panel" label={sideShown ? t("Hide the left side") : t("Show the left side")} pressed={sideShown} onClick={toggleSide} className="max-lg:hidden" />
        <span className="flex-1" />
        {exchanges.length > 0 && <SaveConversation exchanges={exchanges} />}
        {!fresh && (
          <Button
            look="quiet"
            icon="plus"
            onClick={() => {
              reset();
              goTo("ask");
            }}
          >
            {t("New conversation")}
          </Button>
        )}
      </div>
      <div className={cx("flex min-h-0 flex-1 flex-col", fresh && "justify-center-safe overflow-y-auto py-6")}>
        {fresh && <div className="mx-auto mb-6 w-full max-w-[46rem] px-5">{above}</div>}
        <div ref={scroller} tabIndex={0} role="region" aria-label={t("Conversation")} className={cx("min-h-0 flex-1 overflow-y-auto", fresh && "hidden")} onScroll={onScroll}>
          <div ref={content} className="mx-auto max-w-[46rem] px-5">
            {opening !== null && opening.error === null && exchanges.length === 0 && (
              <div className="py-10">
                <Skeleton />
              </div>
            )}
            {opening !== null && opening.error !== null && (
              <div className="py-10">
                <Failure error={opening.error} what={t("This conversation could not be opened.")} onRetry={() => void open(opening.id)} />
              </div>
            )}
            {exchanges.map((exchange, at) => (
              <Guarded key={exchange.id} what={t("This answer")}>
                <ExchangeView exchange={exchange} onAsk={ask} onReplace={replace} onShow={show} onGoOn={goOn} newest={at === exchanges.length - 1} />
              </Guarded>
            ))}
          </div>
        </div>
        <div className="mx-auto w-full max-w-[48rem] shrink-0 px-3 pb-3">
          <Composer />
          {fresh && <Suggestions />}
          {fresh && below}
        </div>
      </div>
    </section>
  );
}
