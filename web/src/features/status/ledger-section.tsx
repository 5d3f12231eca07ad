import { useQuery } from "@tanstack/react-query";
import { ledger } from "@/api/queries";
import type { Ledger } from "@/api/types";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { count } from "@/lib/format";
import { t } from "@/lib/language";

/** Every article of a dump is indexed, a redirect, or skipped for a reason; the parts add up. */
export function LedgerSection() {
  const book = useQuery(ledger);
  const articles = book.data?.articles ?? 0;
  return (
    <Section title={t("Imported dumps")} aside={articles > 0 && <span className="text-xs text-muted tabular-nums">{t("{n} articles", { n: articles })}</span>}>
      {book.isPending && <Skeleton lines={2} />}
      {book.isError && <Failure error={book.error} onRetry={() => void book.refetch()} />}
      {book.isSuccess && articles === 0 && (
        <p className="text-sm text-muted">{t("No dump has been indexed. On the command line: documind bulk index SOURCE --library public")}</p>
      )}
      {book.isSuccess && articles > 0 && <Parts book={book.data} />}
    </Section>
  );
}

function Parts({ book: { articles, indexed, redirects, skipped } }: { book: Ledger }) {
  const reasons = Object.entries(skipped).sort((a, b) => b[1] - a[1]);
  const parts: [string, number, string][] = [
    [t("indexed"), indexed, "bg-accent"],
    [t("redirects"), redirects, "bg-line-strong"],
    ...reasons.map(([reason, n]): [string, number, string] => [t("skipped: {reason}", { reason }), n, "bg-warn"]),
  ];
  return (
    <>
      <div className="flex h-2.5 gap-px overflow-hidden rounded-sm" aria-hidden="true">
        {parts.map(([name, n, colour]) => (
          <span key={name} className={colour} style={{ width: `${(n / articles) * 100}%` }} />
        ))}
      </div>
      <dl className="mt-2 flex flex-wrap gap-x-5 gap-y-1 text-xs">
        {parts.map(([name, n, colour]) => (
          <div key={name} className="flex items-center gap-1.5">
            <span className={`size-2 rounded-sm ${colour}`} aria-hidden="true" />
            <dt className="text-muted">{name}</dt>
            <dd className="tabular-nums">{count(n)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
