import { milliseconds, pageWord } from "@/lib/format";
import { t } from "@/lib/language";
import type { Candidate, TracePass } from "@/lib/trace-picture";

interface Props {
  pass: TracePass;
  selected: number | null;
  onSelect: (chunk: number | null) => void;
}

const WIDTH = 1000;
const TOP = 56;
const LEFT = 50;
const RIGHT = 90;

/** Ranks step by step, best at the top: a line per candidate, ending in a dot where it fell. */
export function RankFlow({ pass, selected, onSelect }: Props) {
  const { stages, candidates, depth } = pass;
  const height = Math.min(520, Math.max(180, depth * 9)) + TOP + 16;
  const x = (stage: number): number => (stages.length === 1 ? WIDTH / 2 : LEFT + (stage * (WIDTH - LEFT - RIGHT)) / (stages.length - 1));
  // The best ranks are what matters: they get more room than the tail.
  const y = (rank: number): number => TOP + ((rank - 1) / Math.max(1, depth - 1)) ** 0.7 * (height - TOP - 16);
  const labels = labelPlaces(candidates, y);
  const kept = candidates.filter((c) => c.fellAt === null).length;
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t("Candidates through the steps")}>
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        className="h-auto w-full min-w-[44rem]"
        role="img"
        aria-label={t("{candidates} candidates through {steps} steps; {kept} stayed. The table below lists each one.", { candidates: candidates.length, steps: stages.length, kept })}
        onClick={() => onSelect(null)}
      >
        {stages.map((stage, i) => (
          <g key={`${stage.name}-${i}`}>
            <line x1={x(i)} x2={x(i)} y1={TOP - 6} y2={height - 8} stroke="var(--line)" />
            <text x={x(i)} y={16} textAnchor="middle" fontSize="13" fontWeight="600" fill="var(--ink)">
              {stage.name.replaceAll("_", " ")}
            </text>
            <text x={x(i)} y={33} textAnchor="middle" fontSize="11" fill="var(--muted)">
              {stage.in} → {stage.out} · {milliseconds(stage.ms)}
            </text>
          </g>
        ))}
        {[...candidates].reverse().map((candidate) => (
          <Way key={candidate.chunk} candidate={candidate} x={x} y={y} label={labels.get(candidate.chunk) ?? null} state={selected === null ? "plain" : selected === candidate.chunk ? "chosen" : "faded"} onSelect={onSelect} />
        ))}
      </svg>
    </div>
  );
}

/** Least distance between the labels of two sources. */
const LABEL_STEP = 15;

/** Place the sources' labels at the end of their lines, pushed down where two would touch. */
function labelPlaces(candidates: readonly Candidate[], y: (rank: number) => number): Map<number, number> {
  const ends = candidates
    .filter((c) => c.source !== null)
    .map((c) => ({ chunk: c.chunk, at: y(c.ranks.findLast((rank) => rank !== null) ?? 1) }))
    .sort((a, b) => a.at - b.at);
  const places = new Map<number, number>();
  let lowest = Number.NEGATIVE_INFINITY;
  for (const end of ends) {
    lowest = Math.max(end.at, lowest + LABEL_STEP);
    places.set(end.chunk, lowest);
  }
  return places;
}

interface WayProps {
  candidate: Candidate;
  label: number | null;
  x: (stage: number) => number;
  y: (rank: number) => number;
  state: "plain" | "chosen" | "faded";
  onSelect: (chunk: number) => void;
}

function Way({ candidate, label, x, y, state, onSelect }: WayProps) {
  const points = candidate.ranks.flatMap((rank, stage) => (rank === null ? [] : [{ x: x(stage), y: y(rank) }]));
  const end = points.at(-1);
  if (end === undefined) return null;
  const stayed = candidate.fellAt === null;
  const colour = stayed ? "var(--accent)" : "var(--line-strong)";
  const opacity = state === "faded" ? 0.12 : state === "chosen" ? 1 : stayed ? 0.9 : 0.4;
  const path = points
    .map((point, i) => {
      const before = points[i - 1];
      if (before === undefined) return `M${point.x} ${point.y}`;
      const middle = (before.x + point.x) / 2;
      return `C${middle} ${before.y} ${middle} ${point.y} ${point.x} ${point.y}`;
    })
    .join("");
  const name = candidate.source === null ? t("passage {id}", { id: String(candidate.chunk) }) : `[${candidate.source.n}] ${candidate.source.title}`;
  return (
    <g
      opacity={opacity}
      className="cursor-pointer"
      onClick={(event) => {
        event.stopPropagation();
        onSelect(candidate.chunk);
      }}
    >
      <title>{`${name}${candidate.reason === "" ? "" : `: ${candidate.reason}`}`}</title>
      <path d={path} fill="none" stroke="transparent" strokeWidth="8" />
      <path d={path} fill="none" stroke={colour} strokeWidth={stayed || state === "chosen" ? 2 : 1} />
      {points.map((point, i) => (
        <circle key={i} cx={point.x} cy={point.y} r={stayed ? 2.5 : 1.8} fill={colour} />
      ))}
      {!stayed && <circle cx={end.x} cy={end.y} r="3" fill="var(--surface)" stroke="var(--bad)" strokeWidth="1.5" />}
      {candidate.source !== null && label !== null && (
        <>
          <path d={`M${end.x + 4} ${end.y}L${end.x + 14} ${label}`} stroke="var(--accent)" strokeWidth="0.8" opacity="0.6" />
          <text x={end.x + 17} y={label + 4} fontSize="11.5" fontWeight="600" fill="var(--accent)">
            [{candidate.source.n}]{" "}
            <tspan fontWeight="400" fill="var(--muted)">
              {candidate.source.page === null ? "" : pageWord(candidate.source.page)}
            </tspan>
          </text>
        </>
      )}
    </g>
  );
}
