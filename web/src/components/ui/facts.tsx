import type { ReactNode } from "react";

/** Names and values in columns. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid gap-x-8 gap-y-1.5 sm:grid-cols-2 lg:grid-cols-3">
      {facts.map(([name, value]) => (
        <div key={name} className="flex min-w-0 items-baseline justify-between gap-3 border-b border-line pb-1">
          <dt className="shrink-0 text-xs text-muted">{name}</dt>
          <dd className="min-w-0 truncate text-right tabular-nums" title={typeof value === "string" ? value : undefined}>
            {value}
          </dd>
        </div>
      ))}
    </dl>
  );
}
