import type { Exchange, Passage } from "@/lib/exchange";
import { type Message, t } from "@/lib/language";
import { CitedText } from "./cited-text";

const TITLE: Message = "From your documents";

interface Props {
  exchange: Exchange;
  quote: Passage;
}

/** What the documents say word for word, before anything that a model wrote. */
export function LeadingQuote({ exchange, quote }: Props) {
  return (
    <section aria-label={t(TITLE)} className="mb-3 border-l-2 border-accent pl-3">
      <h3 className="mb-1 text-xs font-semibold text-accent">{t(TITLE)}</h3>
      <div className="prose" aria-live="polite">
        <CitedText exchange={exchange} passage={quote} />
      </div>
    </section>
  );
}

/** The same under a model that speaks alone: open while its words come, for the quote is there first, then folded away. */
export function FoldedQuote({ exchange, quote }: Props) {
  return (
    <details open={exchange.state !== "done"} className="mt-3 border-l-2 border-line pl-3">
      <summary className="text-xs font-semibold text-muted hover:text-ink">{t("From your documents, word for word")}</summary>
      <div className="prose mt-1" aria-live="polite">
        <CitedText exchange={exchange} passage={quote} />
      </div>
    </details>
  );
}
