import type { Band, Signals } from "@/api/types";
import { Tag } from "@/components/ui/tag";
import { fixed } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const BANDS = {
  strong: { tone: "good", words: "close", title: "This passage is about the question" },
  partial: { tone: "warn", words: "related", title: "This passage is about the question in part" },
  weak: { tone: "plain", words: "far", title: "This passage has little to do with the question" },
} as const satisfies Record<Band, { tone: string; words: Message; title: Message }>;

/** How close a passage is to the question, in one word. */
export function BandTag({ band }: { band: Band | null }) {
  if (band === null) return null;
  const { tone, words, title } = BANDS[band];
  return (
    <Tag tone={tone} title={t(title)}>
      {t(words)}
    </Tag>
  );
}

/** What each step of retrieval knew of a passage, as small labelled bars; a dash where it did not see it. */
export function SignalBars({ signals }: { signals: Signals }) {
  const bars: { name: string; value: number | null; share: number | null; title: string }[] = [
    { name: t("meaning"), value: signals.dense === null ? null : 1 - signals.dense, share: signals.dense === null ? null : 1 - signals.dense, title: t("Cosine similarity of the passage") },
    { name: t("words"), value: signals.bm25, share: signals.bm25 === null ? null : signals.bm25 / (signals.bm25 + 10), title: "BM25" },
    { name: t("overlap"), value: signals.overlap, share: signals.overlap, title: t("Share of the question's words, weighted by rarity") },
    { name: t("sentence"), value: signals.sentence, share: signals.sentence, title: t("Cosine similarity of the best sentence") },
  ];
  return (
    <dl className="grid grid-cols-[repeat(auto-fit,minmax(8.5rem,1fr))] gap-x-4 gap-y-1 text-2xs text-muted">
      {bars.map(({ name, value, share, title }) => (
        <div key={name} title={title} className="flex items-center gap-1.5">
          <dt className="w-14">{name}</dt>
          <dd className="flex flex-1 items-center gap-1.5 tabular-nums">
            <span aria-hidden="true" className="h-1 flex-1 overflow-hidden rounded-full bg-line">
              <span className="block h-full rounded-full bg-accent" style={{ width: `${Math.max(0, Math.min(1, share ?? 0)) * 100}%` }} />
            </span>
            <span className="w-8 text-right">{value === null ? "–" : fixed(value, 2)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
