import type { Band } from "@/api/types";
import { cx } from "@/components/ui/cx";
import { t } from "@/lib/language";

interface Props {
  n: number;
  band: Band | null;
  active: boolean;
  title: string;
  onClick: () => void;
}

/** `[n]` in an answer: goes to its source and highlights the quote. */
export function CitationPill({ n, band, active, title, onClick }: Props) {
  return (
    <button
      type="button"
      data-citation={n}
      aria-label={t("Citation {number}", { number: n })}
      aria-pressed={active}
      title={title}
      onClick={onClick}
      className={cx(
        "mx-[0.1em] inline-flex h-[1.35em] min-w-[1.5em] -translate-y-[0.12em] items-center justify-center rounded-[0.35em] border px-[0.3em] align-baseline font-sans text-[0.68em] leading-none font-semibold tabular-nums transition-colors",
        active ? "border-accent bg-accent text-accent-ink" : band === "weak" ? "border-dashed border-line-strong bg-surface text-muted hover:border-accent" : "border-accent/30 bg-accent-soft text-accent hover:border-accent",
      )}
    >
      {n}
    </button>
  );
}
