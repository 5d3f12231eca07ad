import { useQuery } from "@tanstack/react-query";
import { ledger } from "@/api/queries";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { count } from "@/lib/format";
import { t } from "@/lib/language";

/** Every article of a dump is indexed, a redirect, or skipped for a reason; the parts add up. */
export function LedgerSection() {
  const book = useQuery(ledger);
  if (book.isPending) {
    return (
      <Section title={t("Imported dumps")}>
        <Skeleton lines={2} />
      </Section>
    );
  }
  if (book.isError) {
    return (
      <Section title={t("Imported dumps")}>
        <Failure error={book.error} onRetry={() => void book.refetch()} />
      </Section>
    );
  }
  const { articles, indexed, redirects, skipped } = book.data;
  if (articles === 0) {
    return (
      <Section title={t("Imported dumps")}>
        <p className="text-sm text-muted">{t("No dump has been indexed. On the command line: documind bulk index SOURCE --library public")}</p>
      </Section>
    );
  }
  const reasons = Object.entries(skipped).sort((a, b) => b[1] - a[1]);
  const parts: [string, number, string][] = [
    [t("indexed"), indexed, "bg-accent"],
    [t("redirects"), redirects, "bg-line-strong"],
    ...reasons.map(([reason, n]): [string, number, string] => [t("skipped: {reason}", { reason }), n, "bg-warn"]),
  ];
  return (
    <Section title={t("Imported dumps")} aside={<span className="text-xs text-muted tabular-nums">{t("{n} articles", { n: articles })}</span>}>
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
    </Section>
  );
}
