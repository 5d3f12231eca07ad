import type { SourceRecord, StageRecord } from "@/api/types";

/** One candidate's way through the steps of a pass: its rank at each step that saw it, and where it fell. */
export interface Candidate {
  chunk: number;
  /** One entry per step; null where the step did not list it. */
  ranks: (number | null)[];
  /** Index of the step that dropped it; null when it stayed to the end. */
  fellAt: number | null;
  reason: string;
  /** The source it became, when it did. */
  source: SourceRecord | null;
}

/** One run of the retrieval steps; several searches of a question are several passes. */
export interface TracePass {
  stages: StageRecord[];
  candidates: Candidate[];
  /** Worst rank anywhere, at least 1. */
  depth: number;
}

/**
 * Order a full trace into the ways of its candidates, pass by pass. Steps without items (a model call, a rewrite) are left out.
 */
export function tracePasses(stages: readonly StageRecord[], sources: readonly SourceRecord[]): TracePass[] {
  const runs: StageRecord[][] = [];
  for (const stage of stages.filter((one) => (one.items?.length ?? 0) > 0)) {
    const run = runs.at(-1);
    if (run === undefined || run.some((one) => one.name === stage.name)) runs.push([stage]);
    else run.push(stage);
  }
  return runs.map((run) => tracePass(run, sources));
}

function tracePass(stages: StageRecord[], sources: readonly SourceRecord[]): TracePass {
  const ways = new Map<number, Candidate>();
  stages.forEach((stage, at) => {
    for (const item of stage.items ?? []) {
      const way: Candidate = ways.get(item.chunk) ?? { chunk: item.chunk, ranks: stages.map(() => null), fellAt: null, reason: "", source: null };
      way.ranks[at] = item.rank;
      way.fellAt = item.kept ? null : at;
      if (item.reason !== "") way.reason = item.reason;
      ways.set(item.chunk, way);
    }
  });
  for (const way of ways.values()) {
    const seen = way.ranks.findLastIndex((rank) => rank !== null);
    // Kept by one step and never listed by the next: it fell in between.
    if (way.fellAt === null && seen < stages.length - 1) way.fellAt = seen + 1;
  }
  nameSources(stages.at(-1), ways, sources);
  const candidates = [...ways.values()].sort((a, b) => lifetime(b, stages.length) - lifetime(a, stages.length) || lastRank(a) - lastRank(b));
  return { stages, candidates, depth: Math.max(1, ...candidates.flatMap((c) => c.ranks.map((rank) => rank ?? 0))) };
}

/** Scores are rounded to six digits on both sides. */
const SAME_SCORE = 2e-6;

/** Find the candidates that became sources: sources carry no chunk id, but keep the score of the last step. */
function nameSources(last: StageRecord | undefined, ways: ReadonlyMap<number, Candidate>, sources: readonly SourceRecord[]): void {
  const left = [...sources];
  const kept = (last?.items ?? []).filter((item) => item.kept).sort((a, b) => a.rank - b.rank);
  for (const item of kept) {
    const at = left.findIndex((source) => Math.abs(source.score - item.score) < SAME_SCORE);
    const way = ways.get(item.chunk);
    if (at < 0 || way === undefined) continue;
    way.source = left[at] ?? null;
    left.splice(at, 1);
  }
}

function lifetime(candidate: Candidate, stages: number): number {
  return candidate.fellAt ?? stages;
}

function lastRank(candidate: Candidate): number {
  return candidate.ranks.findLast((rank) => rank !== null) ?? Number.POSITIVE_INFINITY;
}
