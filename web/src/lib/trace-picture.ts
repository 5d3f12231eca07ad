import type { SourceRecord, StageRecord } from "@/api/types";

/** One candidate's way through the steps: its rank at each step that saw it, and where it fell. */
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

export interface TracePicture {
  stages: StageRecord[];
  candidates: Candidate[];
  /** Worst rank anywhere, at least 1. */
  depth: number;
}

/**
 * Order a full trace into the ways of its candidates. Steps without items (a model call, a rewrite) are left out of the picture.
 *
 * Sources carry no chunk id; the candidates that the last step kept are the sources, in rank order.
 */
export function tracePicture(stages: readonly StageRecord[], sources: readonly SourceRecord[]): TracePicture {
  const drawn = stages.filter((stage) => (stage.items?.length ?? 0) > 0);
  const ways = new Map<number, Candidate>();
  drawn.forEach((stage, at) => {
    for (const item of stage.items ?? []) {
      const way: Candidate = ways.get(item.chunk) ?? { chunk: item.chunk, ranks: drawn.map(() => null), fellAt: null, reason: "", source: null };
      way.ranks[at] = item.rank;
      if (item.kept) {
        way.fellAt = null;
        way.reason = item.reason;
      } else {
        way.fellAt ??= at;
        way.reason = item.reason;
      }
      ways.set(item.chunk, way);
    }
  });
  const last = drawn.at(-1);
  const kept = (last?.items ?? []).filter((item) => item.kept).sort((a, b) => a.rank - b.rank);
  kept.forEach((item, i) => {
    const way = ways.get(item.chunk);
    if (way !== undefined) way.source = sources[i] ?? null;
  });
  const candidates = [...ways.values()].sort((a, b) => lifetime(b, drawn.length) - lifetime(a, drawn.length) || lastRank(a) - lastRank(b));
  const depth = Math.max(1, ...candidates.flatMap((c) => c.ranks.map((rank) => rank ?? 0)));
  return { stages: drawn, candidates, depth };
}

function lifetime(candidate: Candidate, stages: number): number {
  return candidate.fellAt ?? stages;
}

function lastRank(candidate: Candidate): number {
  return candidate.ranks.findLast((rank) => rank !== null) ?? Number.POSITIVE_INFINITY;
}
