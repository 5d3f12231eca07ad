import type { ReactNode } from "react";

/** A dense table that scrolls sideways by itself on a narrow screen. */
export function Table({ caption, head, children }: { caption: string; head: readonly ReactNode[]; children: ReactNode }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={caption}>
      <table className="w-full border-collapse text-left text-sm">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th key={i} scope="col" className="border-b border-line-strong py-1.5 pr-4 text-xs font-semibold whitespace-nowrap text-muted">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="[&_td]:border-b [&_td]:border-line [&_td]:py-1.5 [&_td]:pr-4 [&_td]:align-middle [&_td]:tabular-nums">{children}</tbody>
      </table>
    </div>
  );
}
