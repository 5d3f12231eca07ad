import { describe, expect, it } from "vitest";
import type { SourceRecord, StageRecord, TraceItem } from "@/api/types";
import { tracePicture } from "@/lib/trace-picture";

const item = (chunk: number, rank: number, kept: boolean, reason = ""): TraceItem => ({ chunk, rank, score: 1 / rank, kept, reason });
const stages: StageRecord[] = [
  { name: "intent", ms: 0.1, in: 0, out: 0 },
  { name: "fusion", ms: 1, in: 3, out: 3, items: [item(7, 1, true), item(8, 2, true), item(9, 3, true)] },
  { name: "cutoff", ms: 1, in: 3, out: 2, items: [item(8, 1, true), item(7, 2, true), item(9, 3, false, "score under the cutoff")] },
];
const sources = [{ n: 1 }, { n: 2 }] as unknown as SourceRecord[];

describe("trace picture", () => {
  it("follows each candidate to its end", () => {
    const picture = tracePicture(stages, sources);
    expect(picture.stages.map((s) => s.name)).toEqual(["fusion", "cutoff"]);
    expect(picture.depth).toBe(3);
    expect(picture.candidates.map((c) => [c.chunk, c.ranks, c.fellAt, c.reason, c.source?.n ?? null])).toEqual([
      [8, [2, 1], null, "", 1],
      [7, [1, 2], null, "", 2],
      [9, [3, 3], 1, "score under the cutoff", null],
    ]);
  });

  it("lets a candidate that one list lacks pass through another", () => {
    const picture = tracePicture([{ name: "dense", ms: 1, in: 1, out: 1, items: [item(1, 1, true)] }, { name: "lexical", ms: 1, in: 1, out: 1, items: [item(2, 1, true)] }], []);
    expect(picture.candidates.map((c) => c.ranks)).toEqual([[1, null], [null, 1]]);
  });

  it("is empty without items", () => {
    expect(tracePicture([{ name: "x", ms: 1, in: 0, out: 0 }], [])).toEqual({ stages: [], candidates: [], depth: 1 });
  });
});
