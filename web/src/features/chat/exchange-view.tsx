import { useQuery } from "@tanstack/react-query";
import { memo, useCallback, useMemo } from "react";
import { libraries } from "@/api/queries";
import { Markdown } from "@/components/markdown";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { Tag } from "@/components/ui/tag";
import type { Exchange } from "@/hooks/use-chat";
import { useWorkspace } from "@/hooks/use-workspace";
import { plural } from "@/lib/format";
import { AnswerFooter } from "./answer-footer";
import { CitationPill } from "./citation-pill";
import { noticeTone } from "./notices";

interface Props {
  exchange: Exchange;
  onAskAgain: (question: string) => void;
}

/** A question and its answer. */
export const ExchangeView = memo(function ExchangeView({ exchange, onAskAgain }: Props) {
  const { answer, state } = exchange;
  const text = answer?.answer ?? exchange.draft;
  return (
    <article aria-label={exchange.question} className="border-b border-line py-5 last:border-b-0">
      <header className="mb-3">
        <h2 className="font-sans text-base font-semibold whitespace-pre-wrap [overflow-wrap:anywhere]">{exchange.question}</h2>
        <ScopeLine exchange={exchange} />
      </header>
      {(answer?.notices.length ?? 0) > 0 && (
        <div className="mb-3 flex flex-col gap-1">
          {answer?.notices.map((notice) => (
            <Banner key={notice.code} tone={noticeTone(notice.code)}>
              {notice.message}
            </Banner>
          ))}
        </div>
      )}
      {state === "waiting" && <Waiting sources={exchange.sources.length} />}
      {text !== "" && (
        <div className={state === "streaming" ? "prose caret-last" : "prose"} aria-live={state === "streaming" ? "off" : "polite"} aria-busy={state === "streaming"}>
          <AnswerText exchange={exchange} text={text} />
        </div>
      )}
      {state === "stopped" && <p className="mt-2 text-xs text-muted">Stopped. What stands above was not checked against the sources and is not remembered.</p>}
      {state === "failed" && exchange.error !== null && (
        <div className="mt-2">
          <Failure error={exchange.error} onRetry={() => onAskAgain(exchange.question)} what="No answer." />
        </div>
      )}
      {answer?.status === "abstained" && <Elsewhere exchange={exchange} onAskAgain={onAskAgain} />}
      {answer !== null && <AnswerFooter question={exchange.question} answer={answer} />}
    </article>
  );
});

/** Offers the library that was not asked, where the one that was asked does not answer. */
function Elsewhere({ exchange, onAskAgain }: Props) {
  const { data } = useQuery(libraries);
  const { choose } = useWorkspace();
  const other = data?.libraries.find((l) => l.library !== exchange.library && l.documents > 0);
  if (other === undefined || exchange.library === "all" || exchange.scope.length > 0) return null;
  const askAll = (): void => {
    choose("all");
    onAskAgain(exchange.question);
  };
  return (
    <p className="mt-2 flex flex-wrap items-center gap-2 text-sm text-muted">
      Only the library {exchange.library} was asked.
      <Button onClick={askAll}>
        Ask {plural(other.documents, "document")} of {other.library} too
      </Button>
    </p>
  );
}

function AnswerText({ exchange, text }: { exchange: Exchange; text: string }) {
  const { focus, focusOn } = useWorkspace();
  const { answer, id, sources } = exchange;
  const renderCitation = useCallback(
    (n: number, sentence: number) => {
      const source = sources.find((s) => s.n === n);
      const cited = answer?.sentences[sentence]?.citations.find((c) => c.n === n) ?? null;
      const active = focus?.exchange === id && focus.n === n && (cited === null || focus.quote?.start === cited.start);
      return (
        <CitationPill
          n={n}
          band={source?.band ?? null}
          active={active}
          title={source === undefined ? `Source ${n}` : [source.title, source.page === null ? "" : `p. ${source.page}`, cited === null ? "" : `support ${cited.support.toFixed(2)}`].filter(Boolean).join(" · ")}
          onClick={() => focusOn({ exchange: id, n, quote: cited === null ? null : { start: cited.start, end: cited.end, text: cited.quote } })}
        />
      );
    },
    [answer, sources, id, focus, focusOn],
  );
  // Sentences must stand in reading order here, because a pill names its sentence by position.
  const sentences = useMemo(() => answer?.sentences ?? [], [answer]);
  return <Markdown text={text} sentences={sentences} sources={sources.length} renderCitation={renderCitation} />;
}

function Waiting({ sources }: { sources: number }) {
  return (
    <p role="status" className="pulse text-sm text-muted">
      {sources === 0 ? "Searching…" : `Reading ${sources} ${sources === 1 ? "passage" : "passages"}…`}
    </p>
  );
}

function ScopeLine({ exchange }: { exchange: Exchange }) {
  const { scope, library } = exchange;
  const rewritten = exchange.answer?.rewritten_query ?? null;
  if (scope.length === 0 && rewritten === null) return null;
  return (
    <div className="mt-1 flex flex-wrap items-center gap-1 text-xs text-muted">
      {scope.length > 0 && (
        <>
          <span>Only</span>
          {scope.slice(0, 3).map((d) => (
            <Tag key={d.doc_id} title={d.title} tone="info">
              <span className="max-w-48 truncate">{d.title}</span>
            </Tag>
          ))}
          {scope.length > 3 && <span>and {scope.length - 3} more</span>}
          <span>in {library}</span>
        </>
      )}
      {rewritten !== null && <span>Searched as “{rewritten}”</span>}
    </div>
  );
}
