import { describe, expect, it } from "vitest";
import type { SourceRecord, StageRecord, TraceItem } from "@/api/types";
import { tracePasses } from "@/lib/trace-picture";

const item = (chunk: number, rank: number, kept: boolean, reason = ""): TraceItem => ({ chunk, rank, score: 1 / rank, kept, reason });
const stage = (name: string, items: TraceItem[]): StageRecord => ({ name, ms: 1, in: items.length, out: items.filter((i) => i.kept).length, items });
const fusion = stage("fusion", [item(7, 1, true, "distance 0.2"), item(8, 2, true), item(9, 3, true), item(6, 4, true)]);
const cutoff = stage("cutoff", [item(8, 1, true), item(7, 2, true), item(9, 3, false, "closeness 0.1, needs 0.4")]);
const sources = [
  { n: 1, score: 1 },
  { n: 2, score: 0.5 },
] as unknown as SourceRecord[];

describe("trace picture", () => {
  it("follows each candidate to its end", () => {
    const [pass, ...others] = tracePasses([{ name: "intent", ms: 0.1, in: 0, out: 0 }, fusion, cutoff], sources);
    expect(others).toEqual([]);
    expect(pass?.stages.map((s) => s.name)).toEqual(["fusion", "cutoff"]);
    expect(pass?.depth).toBe(4);
    expect(pass?.candidates.map((c) => [c.chunk, c.ranks, c.fellAt, c.reason, c.source?.n ?? null])).toEqual([
      [8, [2, 1], null, "", 1],
      [7, [1, 2], null, "distance 0.2", 2],
      [9, [3, 3], 1, "closeness 0.1, needs 0.4", null],
      [6, [4, null], 1, "", null],
    ]);
  });

  it("starts a new pass where a step comes again", () => {
    const passes = tracePasses([fusion, cutoff, stage("fusion", [item(1, 1, true)])], []);
    expect(passes.map((p) => p.stages.map((s) => s.name))).toEqual([["fusion", "cutoff"], ["fusion"]]);
    expect(passes[1]?.candidates.map((c) => c.chunk)).toEqual([1]);
  });

  it("is empty without items", () => {
    expect(tracePasses([{ name: "x", ms: 1, in: 0, out: 0 }], [])).toEqual([]);
  });
});
