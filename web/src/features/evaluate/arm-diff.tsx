import { useState } from "react";
import type { ReportExperiment } from "@/api/types";
import { Select } from "@/components/ui/field";
import { fixed } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { linear } from "@/lib/scale";
import { armDifference } from "@/lib/scorecard";

const WIDTH = 1000;
const HEIGHT = 150;

/** Two arms on the same questions: one bar per question, from the most lost to the most gained. */
export function ArmDiff({ experiment }: { experiment: ReportExperiment }) {
  const names = experiment.arms.map((arm) => arm.name);
  const [from, setFrom] = useState(experiment.baseline);
  const [to, setTo] = useState(names.findLast((name) => name !== experiment.baseline) ?? experiment.baseline);
  const diff = armDifference(experiment, from, to);
  const changed = diff.differences.filter((d) => Math.abs(d.value) > 1e-9);
  const reach = Math.max(...changed.map((d) => Math.abs(d.value)), 0.001);
  const y = linear([-reach, reach], [HEIGHT - 4, 4]);
  // A single change is a bar, not a wall.
  const bar = Math.min(WIDTH / 40, WIDTH / Math.max(1, changed.length));
  const options = names.map((name) => ({ value: name, label: name }));
  return (
    <div>
      <div className="mb-2 flex flex-wrap items-center gap-1 text-sm">
        {tx("From {first} to {second}", {
          first: <Select label={t("First arm")} value={from} options={options} onValue={setFrom} />,
          second: <Select label={t("Second arm")} value={to} options={options} onValue={setTo} />,
        })}
        <span className="text-xs text-muted tabular-nums">
          {t("{n} questions better, {worse} worse, {same} the same; mean {mean}", { n: diff.better, worse: diff.worse, same: diff.same, mean: `${diff.mean >= 0 ? "+" : ""}${fixed(diff.mean, 4)}` })}
        </span>
      </div>
      {changed.length === 0 ? (
        <p className="text-sm text-muted">{t("No question changes.")}</p>
      ) : (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" className="h-36 w-full" role="img" aria-label={t("Difference per question from {from} to {to}: {better} better, {worse} worse", { from, to, better: diff.better, worse: diff.worse })}>
          {changed.map((d, i) => (
            <rect key={d.question} x={i * bar} width={Math.max(0.5, bar - (bar > 3 ? 1 : 0))} y={Math.min(y(0), y(d.value))} height={Math.max(0.5, Math.abs(y(d.value) - y(0)))} fill={d.value > 0 ? "var(--good)" : "var(--bad)"}>
              <title>{`${experiment.question_texts[d.question] ?? d.question}: ${d.value > 0 ? "+" : ""}${fixed(d.value, 3)}`}</title>
            </rect>
          ))}
          <line x1="0" x2={WIDTH} y1={y(0)} y2={y(0)} stroke="var(--line-strong)" vectorEffect="non-scaling-stroke" />
        </svg>
      )}
    </div>
  );
}
