import { useState } from "react";
import { Button } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Table } from "@/components/ui/table";
import { Tag } from "@/components/ui/tag";
import { t } from "@/lib/language";
import type { TracePass } from "@/lib/trace-picture";

const FIRST = 30;

/** Each candidate with its rank at every step and the reason it stayed or fell. */
export function CandidateTable({ pass, selected, onSelect }: { pass: TracePass; selected: number | null; onSelect: (chunk: number | null) => void }) {
  const [all, setAll] = useState(false);
  const { stages, candidates } = pass;
  const shown = all ? candidates : candidates.slice(0, FIRST);
  return (
    <>
      <Table caption={t("Why each stayed or fell")} head={[t("Passage"), ...stages.map((stage) => stage.name.replaceAll("_", " ")), t("Outcome"), t("Reason")]}>
        {shown.map((candidate) => (
          <tr key={candidate.chunk} className={cx(selected === candidate.chunk && "bg-accent-soft")}>
            <td className="max-w-60">
              <button type="button" aria-pressed={selected === candidate.chunk} onClick={() => onSelect(selected === candidate.chunk ? null : candidate.chunk)} className="max-w-full truncate text-left hover:underline">
                {candidate.source === null ? t("passage {id}", { id: String(candidate.chunk) }) : `[${candidate.source.n}] ${candidate.source.title}`}
              </button>
            </td>
            {candidate.ranks.map((rank, i) => (
              <td key={i} className="text-muted">
                {rank ?? "–"}
              </td>
            ))}
            <td>{candidate.fellAt === null ? <Tag tone="good">{t("stayed")}</Tag> : <Tag tone="bad">{t("fell at {step}", { step: (stages[candidate.fellAt]?.name ?? "").replaceAll("_", " ") })}</Tag>}</td>
            <td className="min-w-40">{candidate.reason}</td>
          </tr>
        ))}
      </Table>
      {candidates.length > FIRST && !all && (
        <Button look="quiet" className="mt-2" onClick={() => setAll(true)}>
          {t("Show all {n}", { n: candidates.length })}
        </Button>
      )}
    </>
  );
}
