import { Fragment, useState } from "react";
import type { ReportExperiment } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Table } from "@/components/ui/table";
import { Tag } from "@/components/ui/tag";
import { fixed } from "@/lib/format";
import { t } from "@/lib/language";
import { foundBy, scorecard } from "@/lib/scorecard";

const FIRST = 25;

/** Every question under every arm, those on which the arms differ most first; a question opens to what each arm found. */
export function ScorecardTable({ experiment }: { experiment: ReportExperiment }) {
  const [shown, setShown] = useState(FIRST);
  const [open, setOpen] = useState<string | null>(null);
  const rows = scorecard(experiment);
  return (
    <>
      <Table caption={t("{measure} by question and arm", { measure: experiment.measure })} head={[t("Question"), ...experiment.arms.map((arm) => arm.name)]}>
        {rows.slice(0, shown).map((row) => (
          <Fragment key={row.question}>
            <tr>
              <td className="max-w-72">
                <button
                  type="button"
                  aria-expanded={open === row.question}
                  title={row.text}
                  onClick={() => setOpen(open === row.question ? null : row.question)}
                  className="w-full truncate text-left underline decoration-line-strong underline-offset-2 hover:text-accent"
                >
                  {row.text}
                </button>
              </td>
              {row.values.map((value, i) => (
                <td key={i}>
                  {value === null ? (
                    "–"
                  ) : (
                    <span className="flex items-center gap-1.5">
                      <span aria-hidden="true" className="h-1.5 w-10 overflow-hidden rounded-full bg-line">
                        <span className="block h-full bg-accent" style={{ width: `${Math.max(0, Math.min(1, value)) * 100}%` }} />
                      </span>
                      {fixed(value, 2)}
                    </span>
                  )}
                </td>
              ))}
            </tr>
            {open === row.question && (
              <tr>
                <td colSpan={experiment.arms.length + 1}>
                  <Passages experiment={experiment} question={row.question} />
                </td>
              </tr>
            )}
          </Fragment>
        ))}
      </Table>
      {rows.length > shown && (
        <Button look="quiet" className="mt-2" onClick={() => setShown((n) => n + 100)}>
          {t("Show more")}
        </Button>
      )}
    </>
  );
}

function Passages({ experiment, question }: { experiment: ReportExperiment; question: string }) {
  return (
    <div className="grid max-w-6xl gap-4 py-1 sm:grid-cols-2 lg:grid-cols-3">
      {experiment.arms.map((arm) => {
        const found = foundBy(experiment, arm.name, question);
        return (
          <section key={arm.name} aria-label={t("Found by {arm}", { arm: arm.name })} className="min-w-0">
            <p className="text-xs font-semibold">{arm.name}</p>
            {found.length === 0 ? (
              <p className="text-xs text-muted">{t("Nothing found")}</p>
            ) : (
              <ol className="mt-1 list-decimal space-y-1 pl-5 text-xs">
                {found.map((passage) => (
                  <li key={passage.id} className="[overflow-wrap:anywhere]">
                    <span className="text-muted">{passage.id}</span> {passage.relevant && <Tag tone="good">{t("relevant")}</Tag>} {passage.preview}
                  </li>
                ))}
              </ol>
            )}
          </section>
        );
      })}
    </div>
  );
}
