import type { ArmTimings, ReportExperiment } from "@/api/types";
import { fixed, milliseconds } from "@/lib/format";
import { t } from "@/lib/language";
import { linear, padded, ticks } from "@/lib/scale";

const WIDTH = 560;
const HEIGHT = 260;
const BOX = { left: 46, right: 70, top: 10, bottom: 34 };

/** Quality against median time on a logarithmic axis: up and left is better. */
export function LatencyChart({ experiment, timings }: { experiment: ReportExperiment; timings: Readonly<Record<string, ArmTimings>> }) {
  const points = experiment.arms.flatMap((arm) => {
    const mean = arm.measures[experiment.measure]?.mean;
    const ms = timings[arm.name]?.p50_ms;
    return mean === undefined || ms === undefined || ms <= 0 ? [] : [{ name: arm.name, mean, ms }];
  });
  if (points.length === 0) return <p className="text-sm text-muted">{t("This report has no timings.")}</p>;
  const logs = padded(points.map((p) => Math.log10(p.ms)), 0.12);
  const quality = padded(points.map((p) => p.mean), 0.12);
  const x = linear(logs, [BOX.left, WIDTH - BOX.right]);
  const y = linear(quality, [HEIGHT - BOX.bottom, BOX.top]);
  const times = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000].filter((ms) => Math.log10(ms) >= logs[0] && Math.log10(ms) <= logs[1]);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className="h-auto w-full min-w-[30rem]" role="img" aria-label={t("{measure} against median time: {arms}", { measure: experiment.measure, arms: points.map((p) => `${p.name} ${fixed(p.mean, 3)}, ${milliseconds(p.ms)}`).join("; ") })}>
      {ticks(quality, 4).map((tick) => (
        <g key={tick}>
          <line x1={BOX.left} x2={WIDTH - BOX.right} y1={y(tick)} y2={y(tick)} stroke="var(--line)" />
          <text x={BOX.left - 8} y={y(tick) + 4} textAnchor="end" fontSize="11" fill="var(--muted)">
            {tick}
          </text>
        </g>
      ))}
      {times.map((ms) => (
        <g key={ms}>
          <line x1={x(Math.log10(ms))} x2={x(Math.log10(ms))} y1={BOX.top} y2={HEIGHT - BOX.bottom} stroke="var(--line)" />
          <text x={x(Math.log10(ms))} y={HEIGHT - BOX.bottom + 16} textAnchor="middle" fontSize="11" fill="var(--muted)">
            {ms}
          </text>
        </g>
      ))}
      <text x={(WIDTH + BOX.left - BOX.right) / 2} y={HEIGHT - 3} textAnchor="middle" fontSize="11" fill="var(--muted)">
        {t("median time, ms")}
      </text>
      {labelled(points.map((point) => ({ ...point, x: x(Math.log10(point.ms)), y: y(point.mean) }))).map((point) => (
        <g key={point.name}>
          <circle cx={point.x} cy={point.y} r="4.5" fill={point.name === experiment.baseline ? "var(--accent)" : "var(--ink)"} />
          <text x={point.beside + 8} y={point.label + 4} fontSize="11.5" fill="var(--ink)">
            {point.name}
          </text>
        </g>
      ))}
    </svg>
  );
}

/** Labels closer than this in both directions would run into each other. */
const NEAR = { x: 80, y: 13 };

/** Points with the place of their label: behind the points that it would lie on, and pushed down where another label stands already. */
function labelled<P extends { x: number; y: number }>(points: readonly P[]): (P & { label: number; beside: number })[] {
  const placed: (P & { label: number; beside: number })[] = [];
  for (const point of [...points].sort((a, b) => a.y - b.y)) {
    let label = point.y;
    for (const other of placed) if (Math.abs(other.x - point.x) < NEAR.x && Math.abs(other.label - label) < NEAR.y) label = other.label + NEAR.y;
    const along = points.filter(({ x, y }) => Math.abs(y - label) < NEAR.y && x >= point.x && x - point.x < NEAR.x);
    placed.push({ ...point, label, beside: Math.max(point.x, ...along.map(({ x }) => x)) });
  }
  return placed;
}
