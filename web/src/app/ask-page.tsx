import { cx } from "@/components/ui/cx";
import { Segmented } from "@/components/ui/field";
import { Guarded } from "@/components/ui/guarded";
import { ChatPane } from "@/features/chat/chat-pane";
import { ConversationsPane } from "@/features/chat/conversations-pane";
import { DocumentsPane } from "@/features/documents/documents-pane";
import { ReaderPane } from "@/features/reader/reader-pane";
import { SourcesPane } from "@/features/sources/sources-pane";
import { FirstSteps, Greeting } from "@/features/welcome/welcome";
import { useChat } from "@/hooks/use-chat";
import { lookedAt } from "@/lib/exchange";
import { type Pane, type Side, useWorkspace } from "@/hooks/use-workspace";
import { optionsOf } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const PANES: readonly (readonly [Pane, Message])[] = [
  ["conversations", "Conversations"],
  ["documents", "Documents"],
  ["chat", "Chat"],
  ["sources", "Sources"],
];

const SIDES: Record<Side, Message> = { conversations: "Conversations", documents: "Documents" };

interface Props {
  onPickFiles: () => void;
  onPickFolder: () => void;
}

/** Three panes side by side; on a phone one at a time. */
export function AskPage({ onPickFiles, onPickFolder }: Props) {
  const { pane, side, showPane, reader, focus, sideShown } = useWorkspace();
  const { exchanges } = useChat();
  const sources = lookedAt(exchanges, focus?.exchange)?.sources.length ?? 0;
  // From the first question on the place for sources stays, so that nothing moves sideways between answers.
  const bare = reader === null && exchanges.length === 0;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-0 flex-1">
        <div className={cx("min-h-0 w-full shrink-0 flex-col lg:flex lg:w-72", pane === side ? "flex" : "hidden", !sideShown && "lg:hidden", reader !== null && "lg:max-xl:hidden")}>
          <div className="border-r border-line bg-paper p-1.5 max-lg:hidden">
            <Segmented label={t("Left side")} value={side} options={optionsOf(SIDES)} onValue={showPane} />
          </div>
          <div className="min-h-0 flex-1">
            <Guarded key={side} what={side === "documents" ? t("Documents") : t("Conversations")}>
              {side === "documents" ? <DocumentsPane onPickFiles={onPickFiles} onPickFolder={onPickFolder} /> : <ConversationsPane />}
            </Guarded>
          </div>
        </div>
        <div className={cx("min-h-0 min-w-0 flex-1 lg:block", pane !== "chat" && "hidden")}>
          <Guarded what={t("Conversation")}>
            <ChatPane above={<Greeting />} below={<FirstSteps onPickFiles={onPickFiles} />} />
          </Guarded>
        </div>
        <div className={cx("min-h-0 w-full shrink-0", bare ? "lg:hidden" : "lg:block", pane !== "sources" && "hidden", reader === null ? "lg:w-[22rem]" : "lg:w-[min(46rem,46%)]")}>
          {reader === null ? (
            <Guarded what={t("Sources")}>
              <SourcesPane />
            </Guarded>
          ) : (
            <Guarded key={`${reader.library}/${reader.doc_id}`} what={t("This document")}>
              <ReaderPane target={reader} />
            </Guarded>
          )}
        </div>
      </div>
      <nav aria-label={t("Panes")} className="flex shrink-0 border-t border-line bg-paper lg:hidden">
        {PANES.map(([name, label]) => (
          <button
            key={name}
            type="button"
            aria-current={pane === name ? "true" : undefined}
            onClick={() => showPane(name)}
            className={cx("min-h-11 grow border-t-2 px-1 text-sm", pane === name ? "border-accent font-semibold" : "border-transparent text-muted")}
          >
            {t(label)}
            {name === "sources" && sources > 0 && <span className="ml-1 text-xs text-muted tabular-nums">{sources}</span>}
          </button>
        ))}
      </nav>
    </div>
  );
}
