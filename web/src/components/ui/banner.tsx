import type { ReactNode } from "react";
import { t } from "@/lib/language";
import { Button } from "./button";
import { cx } from "./cx";
import { Icon } from "./icon";

export type Tone = "info" | "good" | "warn" | "bad";

const TONES: Record<Tone, string> = {
  info: "bg-accent-soft text-ink",
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};

/** A message that stays where it is; failures are announced at once, the rest politely. */
export function Banner({ tone = "info", children, action, className }: { tone?: Tone; children: ReactNode; action?: ReactNode; className?: string }) {
  return (
    <div role={tone === "bad" ? "alert" : "status"} className={cx("flex flex-wrap items-start gap-x-2 rounded-md px-2.5 py-1.5 text-sm", TONES[tone], className)}>
      <span className="mt-0.5">
        <Icon name={tone === "good" ? "check" : tone === "info" ? "info" : "warn"} size={14} />
      </span>
      <div className="min-w-0 flex-1 basis-44 [overflow-wrap:anywhere]">{children}</div>
      {action !== undefined && <div className="ml-auto">{action}</div>}
    </div>
  );
}

/** What was just deleted, with a way back, and why a deletion failed. */
export function UndoBanners({ title, error, onUndo, onDismiss }: { title: string | null; error: Error | null; onUndo: () => void; onDismiss: () => void }) {
  if (title === null && error === null) return null;
  return (
    <div className="border-b border-line p-2">
      {title !== null && (
        <Banner
          action={
            <Button look="quiet" icon="undo" onClick={onUndo} className="-my-0.5 text-accent">
              {t("Undo")}
            </Button>
          }
        >
          {t("Deleted “{title}”.", { title })}
        </Banner>
      )}
      {error !== null && (
        <Banner tone="bad" action={<Button look="quiet" onClick={onDismiss}>{t("Close")}</Button>}>
          {error.message}
        </Banner>
      )}
    </div>
  );
}
