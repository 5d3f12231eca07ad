import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { sharedAnswer } from "@/api/queries";
import type { SharedAnswer } from "@/api/types";
import { Markdown } from "@/components/markdown";
import { Failure, Skeleton } from "@/components/ui/states";
import { ago, modelName, pageWord } from "@/lib/format";
import { t } from "@/lib/language";
import { webLink } from "@/lib/links";

/** One answer that somebody shared, with the words that its citations rest on. */
export function SharedPage({ token }: { token: string }) {
  const { data, error, isPending, refetch } = useQuery(sharedAnswer(token));
  useEffect(() => {
    document.title = data === undefined ? "DocuMind" : `${data.question} · DocuMind`;
    const robots = Object.assign(document.createElement("meta"), { name: "robots", content: "noindex, nofollow" });
    document.head.append(robots);
    return () => robots.remove();
  }, [data]);
  return (
    <main className="h-full overflow-y-auto bg-surface">
      <div className="mx-auto max-w-[46rem] px-5 py-8">
        <p className="mb-6 border-b border-line pb-3 text-xs text-muted">{t("An answer that was shared from DocuMind")}</p>
        {isPending && <Skeleton />}
        {error !== null && <Failure error={error} what={t("Nothing to show.")} onRetry={() => void refetch()} />}
        {data !== undefined && <Shared shared={data} />}
      </div>
    </main>
  );
}

function Shared({ shared }: { shared: SharedAnswer }) {
  const { question, answer, sentences, sources, quote, generator, at } = shared;
  const numbers = useMemo(() => new Set(sources.map((source) => source.n)), [sources]);
  const pill = useCallback(
    (n: number) => (
      <button
        type="button"
        data-citation={n}
        aria-label={t("Citation {number}", { number: n })}
        onClick={() => document.getElementById(`source-${n}`)?.focus()}
        className="mx-[0.1em] inline-flex h-[1.35em] min-w-[1.5em] -translate-y-[0.12em] items-center justify-center rounded-[0.35em] border border-accent/30 bg-accent-soft px-[0.3em] align-baseline font-sans text-[0.68em] leading-none font-semibold text-accent tabular-nums hover:border-accent"
      >
        {n}
      </button>
    ),
    [],
  );
  const quoted = generator.startsWith("extractive");
  return (
    <article aria-label={question}>
      <h1 className="mb-3 font-sans text-base font-semibold [overflow-wrap:anywhere]">{question}</h1>
      <div className="prose">
        <Markdown text={answer} sentences={sentences} sources={numbers} renderCitation={pill} />
      </div>
      {quote !== null && quote.text !== answer && !quote.leads && (
        <section aria-label={t("From your documents")} className="mt-4 border-l-2 border-accent pl-3">
          <h2 className="mb-1 text-xs font-semibold text-accent">{t("From the documents")}</h2>
          <div className="prose">
            <Markdown text={quote.text} sentences={quote.sentences} sources={numbers} renderCitation={pill} />
          </div>
        </section>
      )}
      <p className="mt-3 text-xs text-muted">{[quoted ? t("Quoted, word for word") : t("Written by {model}", { model: modelName(generator) }), ago(at)].join(" · ")}</p>
      {sources.length > 0 && (
        <section aria-labelledby="sources" className="mt-6 border-t border-line pt-4">
          <h2 id="sources" className="mb-2 text-sm font-semibold">
            {t("Sources")}
          </h2>
          <ol className="flex flex-col gap-3">
            {sources.map((source) => (
              <Source key={source.n} source={source} quotes={quotesOf(source.n, shared)} />
            ))}
          </ol>
        </section>
      )}
    </article>
  );
}

function Source({ source, quotes }: { source: SharedAnswer["sources"][number]; quotes: readonly string[] }) {
  const { n, title, authors, year, page, licence, source_url } = source;
  const link = webLink(source_url);
  return (
    <li id={`source-${n}`} tabIndex={-1} className="rounded-md border border-line p-3 text-sm focus:border-accent">
      <p className="font-medium [overflow-wrap:anywhere]">
        [{n}] {title === "" ? t("a document that was deleted") : title}
      </p>
      <p className="text-xs text-muted">
        {[authors.join(", "), year ?? "", page === null ? "" : pageWord(page), licence ?? ""].filter((one) => one !== "").join(" · ")}
        {link !== null && (
          <a href={link.href} rel="noreferrer noopener" className="ml-2 text-accent underline underline-offset-2">
            {link.host}
          </a>
        )}
      </p>
      {quotes.map((quote) => (
        <blockquote key={quote} className="mt-2 border-l-2 border-mark pl-3 font-serif [overflow-wrap:anywhere]">
          {quote}
        </blockquote>
      ))}
    </li>
  );
}

/** The words that citations of a source rest on, each once. */
function quotesOf(n: number, { sentences, quote }: SharedAnswer): string[] {
  const cited = [...sentences, ...(quote?.sentences ?? [])].flatMap((sentence) => sentence.citations);
  return [...new Set(cited.filter((one) => one.n === n && one.quote !== "").map((one) => one.quote))];
}
