import { useState } from "react";
import type { Exchange, Reading } from "@/lib/exchange";
import { t } from "@/lib/language";
import { readingLine } from "@/lib/reading";

/** What the page waits for until the first word. */
export function Waiting({ exchange }: { exchange: Exchange }) {
  const { reading, sources } = exchange;
  if (reading !== null) return <ReadingBar key={reading.since} reading={reading} />;
  return (
    <p role="status" className="pulse text-sm text-muted">
      {sources.length === 0 ? t("Searching…") : t("Reading {n} passages…", { n: sources.length })}
    </p>
  );
}

/** A bar that runs over the seconds that reading took before; it sways where they are not known. */
function ReadingBar({ reading }: { reading: Reading }) {
  const [passed] = useState(() => (Date.now() - reading.since) / 1000);
  const line = readingLine(reading);
  return (
    <div className="max-w-96">
      <p role="status" className="text-sm text-muted">
        {line}
      </p>
      <div role="progressbar" aria-label={t("Reading")} aria-valuetext={line} className="mt-1.5 h-1 overflow-hidden rounded-sm bg-sunken">
        {reading.seconds === null ? (
          <div className="reading-sways h-full w-1/3 rounded-sm bg-accent" />
        ) : (
          <div className="reading-runs h-full rounded-sm bg-accent" style={{ animationDuration: `${reading.seconds}s`, animationDelay: `${-passed}s` }} />
        )}
      </div>
    </div>
  );
}
