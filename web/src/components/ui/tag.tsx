import type { ReactNode } from "react";
import type { Tone } from "./banner";
import { cx } from "./cx";

const TONES: Record<Tone | "plain", string> = {
  plain: "border-line text-muted",
  info: "border-transparent bg-accent-soft text-accent",
  good: "border-transparent bg-good-soft text-good",
  warn: "border-transparent bg-warn-soft text-warn",
  bad: "border-transparent bg-bad-soft text-bad",
};

/** A word or two about the neighbouring element. */
export function Tag({ tone = "plain", children, title }: { tone?: Tone | "plain"; children: ReactNode; title?: string }) {
  return (
    <span title={title} className={cx("inline-flex items-center rounded-sm border px-1.5 text-2xs font-medium whitespace-nowrap", TONES[tone])}>
      {children}
    </span>
  );
}
