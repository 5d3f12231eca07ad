import { cx } from "@/components/ui/cx";
import { Guarded } from "@/components/ui/guarded";
import { ChatPane } from "@/features/chat/chat-pane";
import { DocumentsPane } from "@/features/documents/documents-pane";
import { ReaderPane } from "@/features/reader/reader-pane";
import { SourcesPane } from "@/features/sources/sources-pane";
import { Welcome } from "@/features/welcome/welcome";
import { useChat } from "@/hooks/use-chat";
import { hasSources, lookedAt } from "@/lib/exchange";
import { type Pane, useWorkspace } from "@/hooks/use-workspace";

const PANES: readonly (readonly [Pane, string])[] = [
  ["documents", "Documents"],
  ["chat", "Chat"],
  ["sources", "Sources"],
];

interface Props {
  onPickFiles: () => void;
  onPickFolder: () => void;
}

/** Three panes side by side; on a phone one at a time. */
export function AskPage({ onPickFiles, onPickFolder }: Props) {
  const { pane, showPane, reader, focus, documentsShown } = useWorkspace();
  const { exchanges } = useChat();
  const shown = lookedAt(exchanges, focus?.exchange);
  const sources = shown?.sources.length ?? 0;
  const bare = reader === null && !hasSources(shown);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-0 flex-1">
        <div className={cx("min-h-0 w-full shrink-0 lg:block lg:w-72", pane !== "documents" && "hidden", !documentsShown && "lg:hidden", reader !== null && "lg:max-xl:hidden")}>
          <Guarded what="The list of documents">
            <DocumentsPane onPickFiles={onPickFiles} onPickFolder={onPickFolder} />
          </Guarded>
        </div>
        <div className={cx("min-h-0 min-w-0 flex-1 lg:block", pane !== "chat" && "hidden")}>
          <Guarded what="The conversation">
            <ChatPane empty={<Welcome onPickFiles={onPickFiles} />} />
          </Guarded>
        </div>
        <div className={cx("min-h-0 w-full shrink-0", bare ? "lg:hidden" : "lg:block", pane !== "sources" && "hidden", reader === null ? "lg:w-[22rem]" : "lg:w-[min(46rem,46%)]")}>
          {reader === null ? (
            <Guarded what="The sources">
              <SourcesPane />
            </Guarded>
          ) : (
            <Guarded key={`${reader.library}/${reader.doc_id}`} what="This document">
              <ReaderPane target={reader} />
            </Guarded>
          )}
        </div>
      </div>
      <nav aria-label="Panes" className="flex shrink-0 border-t border-line bg-paper lg:hidden">
        {PANES.map(([name, label]) => (
          <button
            key={name}
            type="button"
            aria-current={pane === name ? "true" : undefined}
            onClick={() => showPane(name)}
            className={cx("min-h-11 flex-1 border-t-2 text-sm", pane === name ? "border-accent font-semibold" : "border-transparent text-muted")}
          >
            {label}
            {name === "sources" && sources > 0 && <span className="ml-1 text-xs text-muted tabular-nums">{sources}</span>}
          </button>
        ))}
      </nav>
    </div>
  );
}
