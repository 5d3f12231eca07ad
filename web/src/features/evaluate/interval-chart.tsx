import type { ReportExperiment } from "@/api/types";
import { fixed } from "@/lib/format";
import { t } from "@/lib/language";
import { linear, padded, ticks } from "@/lib/scale";

const WIDTH = 560;
const ROW = 26;
const LEFT = 130;
const RIGHT = 56;

/** Mean of each arm with its 95 % interval; a dashed line where the baseline stands. */
export function IntervalChart({ experiment }: { experiment: ReportExperiment }) {
  const rows = experiment.arms.flatMap((arm) => {
    const interval = arm.measures[experiment.measure];
    return interval === undefined ? [] : [{ name: arm.name, ...interval }];
  });
  if (rows.length === 0) return null;
  const domain = padded(rows.flatMap((row) => [row.low, row.high]));
  const x = linear(domain, [LEFT, WIDTH - RIGHT]);
  const height = rows.length * ROW + 34;
  const baseline = rows.find((row) => row.name === experiment.baseline);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${height}`} className="h-auto w-full min-w-[30rem]" role="img" aria-label={t("{measure} of {count} arms with 95 % intervals: {arms}", { measure: experiment.measure, count: rows.length, arms: rows.map((r) => `${r.name} ${fixed(r.mean, 3)}`).join(", ") })}>
      {ticks(domain).map((tick) => (
        <g key={tick}>
          <line x1={x(tick)} x2={x(tick)} y1={4} y2={height - 24} stroke="var(--line)" />
          <text x={x(tick)} y={height - 8} textAnchor="middle" fontSize="11" fill="var(--muted)">
            {tick}
          </text>
        </g>
      ))}
      {baseline !== undefined && <line x1={x(baseline.mean)} x2={x(baseline.mean)} y1={4} y2={height - 24} stroke="var(--accent)" strokeDasharray="3 3" />}
      {rows.map((row, i) => {
        const y = i * ROW + ROW / 2 + 4;
        const colour = row.name === experiment.baseline ? "var(--accent)" : "var(--ink)";
        return (
          <g key={row.name}>
            <text x={LEFT - 10} y={y + 4} textAnchor="end" fontSize="12" fontWeight={row.name === experiment.baseline ? 650 : 400} fill={colour}>
              {row.name.length > 20 ? `${row.name.slice(0, 19)}…` : row.name}
              <title>{row.name}</title>
            </text>
            <line x1={x(row.low)} x2={x(row.high)} y1={y} y2={y} stroke={colour} strokeWidth="1.5" />
            {[row.low, row.high].map((edge) => (
              <line key={edge} x1={x(edge)} x2={x(edge)} y1={y - 4} y2={y + 4} stroke={colour} strokeWidth="1.5" />
            ))}
            <circle cx={x(row.mean)} cy={y} r="4" fill={colour} />
            <text x={WIDTH - RIGHT + 12} y={y + 4} fontSize="11" fill="var(--muted)">
              {fixed(row.mean, 3)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
