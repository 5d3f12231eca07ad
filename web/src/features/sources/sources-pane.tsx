import { Button } from "@/components/ui/button";
import { Guarded } from "@/components/ui/guarded";
import { Empty } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { same, useWorkspace } from "@/hooks/use-workspace";
import { lookedAt } from "@/lib/exchange";
import { t } from "@/lib/language";
import { SourceCard } from "./source-card";

/** Right pane: the passages behind the answer that is looked at, best first. */
export function SourcesPane() {
  const { exchanges } = useChat();
  const { focus, read, scoresShown, toggleScores, tinted, toggleTints, aside, toggleAside } = useWorkspace();
  const exchange = lookedAt(exchanges, focus?.exchange);
  const sources = exchange?.sources ?? [];
  const busy = exchange?.state === "waiting" || exchange?.state === "streaming";
  return (
    <section aria-label={t("Sources")} className="flex h-full min-h-0 flex-col border-l border-line bg-paper">
      <div className="flex h-10 shrink-0 items-center justify-between border-b border-line px-3">
        <h2 className="text-sm font-semibold">
          {t("Sources")} {sources.length > 0 && <span className="text-2xs font-normal text-muted tabular-nums">{sources.length}</span>}
        </h2>
        {sources.length > 0 && (
          <div className="flex">
            <Button look="quiet" aria-pressed={tinted} onClick={toggleTints} title={t("Tint each sentence of an answer by its source")}>
              {tinted ? t("No colours") : t("Colours")}
            </Button>
            <Button look="quiet" aria-pressed={scoresShown} onClick={toggleScores} title={t("How each step of the search scored a passage")}>
              {scoresShown ? t("Hide scores") : t("Scores")}
            </Button>
          </div>
        )}
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("Source list")}>
        {sources.map((source) => (
          <Guarded key={`${exchange?.id ?? ""}-${source.n}`} what={t("Source {number}", { number: source.n })}>
            <SourceCard
              source={source}
              namesake={sources.some(({ title, doc_id }) => title === source.title && doc_id !== source.doc_id)}
              scores={scoresShown}
              tinted={tinted}
              aside={aside.some((one) => same(one, source))}
              onAside={() => toggleAside(source)}
              focus={focus !== null && focus.exchange === exchange?.id && focus.n === source.n ? focus : null}
              onOpen={({ start, end }) =>
                read({ library: source.library, doc_id: source.doc_id, title: source.title, revision: source.revision, start, end, page: source.page })
              }
            />
          </Guarded>
        ))}
        {sources.length === 0 && (
          <Empty title={exchange === undefined ? t("Sources appear here") : busy ? t("Searching") : t("No sources")}>
            {exchange === undefined
              ? t("Every citation in an answer leads to the exact words it came from. Click one to see them.")
              : busy
                ? t("The passages come before the first word.")
                : t("This answer cites nothing.")}
          </Empty>
        )}
      </div>
    </section>
  );
}
