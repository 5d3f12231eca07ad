import type { ReactNode } from "react";
import { ApiError } from "@/api/http";
import { sentence } from "@/lib/format";
import { t } from "@/lib/language";
import { Banner } from "./banner";
import { Button } from "./button";

/** Grey lines where text will be. */
export function Skeleton({ lines = 4, label = t("Loading") }: { lines?: number; label?: string }) {
  const widths = ["w-11/12", "w-4/5", "w-full", "w-2/3", "w-5/6"];
  return (
    <div role="status" aria-label={label} className="flex flex-col gap-2.5 py-2">
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} className={`pulse h-2.5 rounded-sm bg-line ${widths[i % widths.length] ?? ""}`} />
      ))}
    </div>
  );
}

/** What a view says when it has nothing to show, and what to do about it. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-sm flex-col items-center gap-2 px-4 py-10 text-center">
      <p className="font-serif text-lg text-ink">{title}</p>
      {children !== undefined && <div className="text-sm text-muted">{children}</div>}
      {action}
    </div>
  );
}

/** What went wrong, in the server's words, with a way to try again. */
export function Failure({ error, onRetry, what }: { error: Error; onRetry?: () => void; what?: string }) {
  // The dialog asks for the key; every view behind it would say the same.
  if (error instanceof ApiError && error.problem.code === "unauthorized") return null;
  const request = error instanceof ApiError ? error.problem.request_id : "";
  return (
    <Banner
      tone="bad"
      action={
        onRetry !== undefined ? (
          <Button look="quiet" icon="retry" onClick={onRetry} className="-my-0.5 text-bad">
            {t("Retry")}
          </Button>
        ) : undefined
      }
    >
      {what !== undefined && <strong className="font-semibold">{what} </strong>}
      {sentence(error.message)}
      {request !== "" && <span className="block text-2xs">{t("Request {id}", { id: request })}</span>}
    </Banner>
  );
}
