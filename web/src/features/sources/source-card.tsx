import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { documentText } from "@/api/queries";
import type { SourceRecord } from "@/api/types";
import { FlagTag } from "@/components/flag-tag";
import { MarkedText } from "@/components/marked-text";
import { BandTag, SignalBars } from "@/components/signals";
import { Button } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import type { Focus } from "@/hooks/use-workspace";
import { fixed, placeWords } from "@/lib/format";
import { t } from "@/lib/language";
import { tintOf } from "@/lib/answer-marks";
import { programLink, webLink } from "@/lib/links";
import { isHeaded } from "@/lib/passage";

interface Props {
  source: SourceRecord;
  /** Another document of the answer has the same title: the file tells them apart. */
  namesake?: boolean;
  /** Whether to show how the search scored it. */
  scores: boolean;
  /** Set while a pill points here. */
  focus: Focus | null;
  onOpen: (span: { start: number; end: number }) => void;
  /** Whether its number has the tint of its sentences. */
  tinted?: boolean;
  /** Left out of the next question, its sentences hidden. */
  aside?: boolean;
  onAside?: () => void;
}

/** One passage of an answer: where it is from, how it scored, what it says, and the quote in it. */
export function SourceCard({ source, namesake = false, scores, focus, onOpen, tinted = false, aside = false, onAside }: Props) {
  const card = useRef<HTMLElement>(null);
  const [unfolded, setUnfolded] = useState(false);
  const quote = focus?.quote ?? null;
  const whole = focus !== null || unfolded;
  const elsewhere = programLink(source);
  const passage = useQuery({ ...documentText(source.library, source.doc_id, source.revision, source.start, source.end), enabled: whole });
  useEffect(() => {
    if (focus !== null) card.current?.scrollIntoView({ block: "nearest" });
  }, [focus]);
  const text = passage.data?.text ?? source.preview;
  const span = quote ?? (focus === null ? { start: 0, end: 0 } : { start: source.start, end: source.end });
  // A quote may reach past the passage, or the passage may still be on its way: then the quote is shown by itself.
  const inside = quote === null || (quote.start >= source.start && quote.end <= source.start + (passage.data === undefined ? 0 : source.end - source.start));
  return (
    <article
      ref={card}
      aria-label={t("Source {number}: {title}", { number: source.n, title: source.title })}
      aria-current={focus !== null}
      className={cx("border-b border-line px-3 py-3 last:border-b-0", focus !== null && "bg-accent-soft/50 shadow-[inset_2px_0_0_var(--accent)]")}
    >
      <div className="flex items-start gap-2">
        <span className={cx("mt-px inline-flex h-5 min-w-5 items-center justify-center rounded-sm px-1 text-2xs font-semibold tabular-nums", tinted ? `text-ink ${tintOf(source.n)}` : "bg-accent-soft text-accent")}>{source.n}</span>
        <div className="min-w-0 flex-1">
          <h3 className="text-sm leading-5 font-semibold [overflow-wrap:anywhere]">
            <button type="button" className="text-left hover:underline" onClick={() => onOpen(quote ?? { start: source.start, end: source.end })}>
              {source.title}
            </button>
          </h3>
          <p className="text-2xs text-muted">{[namesake ? source.filename : "", placeWords(source)].filter(Boolean).join(" · ")}</p>
        </div>
        <FlagTag flags={source.flags} />
        <BandTag band={source.band} />
      </div>
      <div className={cx("mt-2 font-serif text-[0.875rem] leading-[1.4rem] whitespace-pre-line [overflow-wrap:anywhere]", isHeaded(text) && "first-line:font-semibold", !whole && "line-clamp-4")}>
        {quote !== null && !inside ? (
          <mark data-highlight="">{quote.text}</mark>
        ) : (
          <MarkedText text={text} offset={source.start} start={span.start} end={span.end} scroll={focus !== null} dense />
        )}
      </div>
      <div className="mt-2 flex flex-wrap items-center gap-1">
        <Button look="quiet" icon="open" className="-ml-2" onClick={() => onOpen(quote ?? { start: source.start, end: source.end })}>
          {t("Open document")}
        </Button>
        {elsewhere !== null && (
          <a href={elsewhere.href} className="inline-flex min-h-7 items-center rounded-md px-2.5 py-1 text-sm leading-4 font-medium whitespace-nowrap text-muted hover:bg-sunken hover:text-ink">
            {t(elsewhere.label)}
          </a>
        )}
        {onAside !== undefined && (
          <label className="inline-flex min-h-7 items-center gap-1.5 px-2 text-sm text-muted" title={t("Without the tick, its sentences are hidden and the next question leaves the document out")}>
            <input type="checkbox" checked={!aside} onChange={onAside} />
            {t("Use it")}
          </label>
        )}
        {focus === null && (
          <Button look="quiet" aria-expanded={unfolded} onClick={() => setUnfolded((was) => !was)}>
            {unfolded ? t("Less") : t("Whole passage")}
          </Button>
        )}
      </div>
      {scores && (
        <div className="mt-2 border-t border-line pt-2">
          <SignalBars signals={source.signals} />
          <p className="mt-1 text-2xs text-muted tabular-nums" title={t("Orders the sources of this answer; not comparable between questions")}>
            {t("score {score}", { score: fixed(source.score, 3) })}
          </p>
        </div>
      )}
      <Licence licence={whole ? source.licence : null} url={source.source_url} />
    </article>
  );
}

function Licence({ licence, url }: { licence: string | null; url: string | null }) {
  const link = webLink(url);
  if (licence === null && link === null) return null;
  return (
    <p className="mt-1 truncate text-2xs text-muted">
      {licence}
      {licence !== null && link !== null && " · "}
      {link !== null && (
        <a href={link.href} target="_blank" rel="noopener noreferrer nofollow" className="underline underline-offset-2 hover:text-ink">
          {link.host}
        </a>
      )}
    </p>
  );
}
