import { useState } from "react";
import type { ReportExperiment } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Table } from "@/components/ui/table";
import { scorecard } from "@/lib/scorecard";

const FIRST = 25;

/** Every question under every arm, those on which the arms differ most first. */
export function ScorecardTable({ experiment }: { experiment: ReportExperiment }) {
  const [shown, setShown] = useState(FIRST);
  const rows = scorecard(experiment);
  return (
    <>
      <Table caption={`${experiment.measure} by question and arm`} head={["Question", ...experiment.arms.map((arm) => arm.name)]}>
        {rows.slice(0, shown).map((row) => (
          <tr key={row.question}>
            <td className="max-w-72 truncate" title={row.question}>
              {row.question}
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
                    {value.toFixed(2)}
                  </span>
                )}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {rows.length > shown && (
        <Button look="quiet" className="mt-2" onClick={() => setShown((n) => n + 100)}>
          Show more of {rows.length} questions
        </Button>
      )}
    </>
  );
}
