import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { documentText } from "@/api/queries";
import { MarkedText } from "@/components/marked-text";
import { Button } from "@/components/ui/button";
import { Failure, Skeleton } from "@/components/ui/states";
import type { ReaderTarget } from "@/hooks/use-workspace";
import { t } from "@/lib/language";

/** Characters shown before and after the span at first, and added by each "more". */
const AROUND = 6000;

/** The stored text around a span, the span highlighted; grows in both directions on request. */
export function TextView({ target }: { target: ReaderTarget }) {
  const [before, setBefore] = useState(1);
  const [after, setAfter] = useState(1);
  // The span itself first: its reply says how long the text is, and no request may reach beyond that.
  const span = useQuery(documentText(target.library, target.doc_id, target.revision, target.start, target.end));
  const from = Math.max(0, target.start - before * AROUND);
  const to = Math.min(span.data?.length ?? target.end, target.end + after * AROUND);
  const around = useQuery({
    ...documentText(target.library, target.doc_id, target.revision, from, to),
    enabled: span.data !== undefined,
    placeholderData: (previous) => previous,
  });
  const text = span.isError ? span : around;
  if (text.isPending) {
    return (
      <div className="p-4">
        <Skeleton lines={8} />
      </div>
    );
  }
  if (text.isError) {
    return (
      <div className="p-3">
        <Failure error={text.error} onRetry={() => void text.refetch()} />
      </div>
    );
  }
  const { data } = text;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto bg-surface" tabIndex={0} role="region" aria-label={t("Text of the document")}>
      <div className="mx-auto max-w-[42rem] px-5 py-5">
        {data.start > 0 && (
          <Button look="quiet" className="mb-3" onClick={() => setBefore((n) => n + 2)}>
            {t("Show what comes before")}
          </Button>
        )}
        <div className="font-serif text-[0.9375rem] leading-[1.6rem] whitespace-pre-wrap [overflow-wrap:anywhere]">
          <MarkedText text={data.text} offset={data.start} start={target.start} end={target.end} scroll />
        </div>
        {data.end < data.length && (
          <Button look="quiet" className="mt-3" onClick={() => setAfter((n) => n + 2)}>
            {t("Show more")}
          </Button>
        )}
        <p className="mt-4 text-2xs text-muted tabular-nums">
          {t("Characters {start} to {end} of {length}, revision {revision}", { start: data.start, end: data.end, length: data.length, revision: data.revision })}
        </p>
      </div>
    </div>
  );
}
