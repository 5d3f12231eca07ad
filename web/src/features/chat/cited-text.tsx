import { useCallback, useMemo } from "react";
import type { CitationRecord, SourceRecord } from "@/api/types";
import { Markdown } from "@/components/markdown";
import { same, useWorkspace } from "@/hooks/use-workspace";
import type { Exchange, Passage } from "@/lib/exchange";
import { pageWord } from "@/lib/format";
import { t } from "@/lib/language";
import { citationWords } from "@/lib/trust";
import { CitationPill } from "./citation-pill";

interface Props {
  exchange: Exchange;
  passage: Passage;
  /** A model wrote it: then it is worth saying which marks are not its own. */
  byModel?: boolean;
}

/** Text of an answer or quote whose pills open the very sentence that supports it. */
export function CitedText({ exchange, passage, byModel = false }: Props) {
  const { focus, focusOn, tinted, aside } = useWorkspace();
  const { id, sources } = exchange;
  const { text, sentences } = passage;
  const numbers = useMemo(() => new Set(sources.map((source) => source.n)), [sources]);
  const hidden = useMemo(() => new Set(sources.filter((source) => aside.some((one) => same(one, source))).map((source) => source.n)), [sources, aside]);
  const renderCitation = useCallback(
    (n: number, sentence: number) => {
      const source = sources.find((s) => s.n === n);
      // A pill names its sentence by position, so sentences stand in reading order.
      const cited = sentences[sentence]?.citations.find((c) => c.n === n) ?? null;
      const active = focus?.exchange === id && focus.n === n && (cited === null || focus.quote?.start === cited.start);
      return (
        <CitationPill
          n={n}
          band={source?.band ?? null}
          active={active}
          title={titleOf(n, source, cited, byModel)}
          onClick={() => focusOn({ exchange: id, n, quote: cited === null ? null : { start: cited.start, end: cited.end, text: cited.quote } })}
        />
      );
    },
    [sentences, sources, byModel, id, focus, focusOn],
  );
  return <Markdown text={text} sentences={sentences} sources={numbers} tinted={tinted} aside={hidden} renderCitation={renderCitation} />;
}

function titleOf(n: number, source: SourceRecord | undefined, cited: CitationRecord | null, byModel: boolean): string {
  if (source === undefined) return t("Source {number}", { number: n });
  const parts = [source.title, source.page === null ? "" : pageWord(source.page)];
  if (cited !== null) parts.push(citationWords(cited.support), byModel && cited.cited_by === "engine" ? t("mark set by DocuMind") : "");
  return parts.filter(Boolean).join(" · ");
}
