import type { ReactNode } from "react";

/** A titled part of a page. */
export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="rounded-lg border border-line bg-surface p-4">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-sm font-semibold">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** The frame of all pages but Ask: a heading, a lead line, a scrolling column. */
export function Page({ title, lead, aside, children, wide = false }: { title: string; lead?: ReactNode; aside?: ReactNode; children: ReactNode; wide?: boolean }) {
  return (
    <div className="h-full overflow-y-auto">
      <div className={`mx-auto flex flex-col gap-4 px-4 py-6 sm:px-6 ${wide ? "max-w-7xl" : "max-w-5xl"}`}>
        <div className="flex flex-wrap items-end justify-between gap-3">
          <div>
            {/* The page's h1 stands in the shell, where no pane hides it. */}
            <p aria-hidden="true" className="font-serif text-xl">
              {title}
            </p>
            {lead !== undefined && <p className="mt-1 max-w-2xl text-sm text-muted">{lead}</p>}
          </div>
          {aside}
        </div>
        {children}
      </div>
    </div>
  );
}
