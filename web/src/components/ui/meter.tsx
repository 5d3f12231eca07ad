import { cx } from "./cx";
import type { Tone } from "./banner";

const FILL: Record<Tone, string> = { info: "bg-accent", good: "bg-good", warn: "bg-warn", bad: "bg-bad" };

/** A share in [0, 1] as a bar; null when it cannot be known. */
export function Meter({ value, label, tone = "info", className }: { value: number | null; label: string; tone?: Tone; className?: string }) {
  const share = value === null ? null : Math.max(0, Math.min(1, value));
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share === null ? undefined : Math.round(share * 100)}
      className={cx("h-1 overflow-hidden rounded-full bg-line", className)}
    >
      <div className={cx("h-full rounded-full transition-[width]", FILL[tone], share === null && "pulse")} style={{ width: share === null ? "100%" : `${share * 100}%` }} />
    </div>
  );
}
