import { describe, expect, it } from "vitest";
import type { ReportExperiment } from "@/api/types";
import { linear, padded, ticks } from "@/lib/scale";
import { armDifference, foundBy, scorecard } from "@/lib/scorecard";

const arm = (name: string, per_question: Record<string, number>) => ({ name, settings: {}, measures: {}, grounded_rate: null, overlap_with_baseline: 1, per_question });
const experiment: ReportExperiment = {
  collection: "c",
  questions: 3,
  passages: 9,
  baseline: "a",
  measure: "nDCG@10",
  arms: [arm("a", { q1: 1, q2: 0.5, q3: 0 }), arm("b", { q1: 0.5, q2: 0.5, q3: 1 })],
  comparisons: [],
  question_texts: { q1: "Who?", q2: "Where?" },
  relevant: { q1: ["p1"] },
  found: { a: { q1: ["p2", "p1"] } },
  previews: { p1: "one", p2: "two" },
};

describe("scorecard", () => {
  it("puts the questions first on which arms differ most", () => {
    expect(scorecard(experiment).map((row) => [row.question, row.values, row.spread])).toEqual([
      ["q3", [0, 1], 1],
      ["q1", [1, 0.5], 0.5],
      ["q2", [0.5, 0.5], 0],
    ]);
  });

  it("says questions in words, or by their id where there are none", () => {
    expect(scorecard(experiment).map((row) => row.text)).toEqual(["q3", "Who?", "Where?"]);
  });

  it("lists what an arm found, best first", () => {
    expect(foundBy(experiment, "a", "q1")).toEqual([
      { id: "p2", preview: "two", relevant: false },
      { id: "p1", preview: "one", relevant: true },
    ]);
    expect(foundBy(experiment, "b", "q1")).toEqual([]);
  });

  it("counts what gets better and worse between two arms", () => {
    const diff = armDifference(experiment, "a", "b");
    expect([diff.better, diff.worse, diff.same]).toEqual([1, 1, 1]);
    expect(diff.mean).toBeCloseTo(0.5 / 3);
    expect(diff.differences.map((d) => d.question)).toEqual(["q1", "q2", "q3"]);
    expect(armDifference(experiment, "b", "a").mean).toBeCloseTo(-0.5 / 3);
    expect(armDifference(experiment, "a", "none").differences).toEqual([]);
  });
});

describe("scale", () => {
  it("maps ends to ends and a point to the middle", () => {
    const x = linear([0, 10], [100, 200]);
    expect([x(0), x(5), x(10)]).toEqual([100, 150, 200]);
    expect(linear([3, 3], [0, 10])(3)).toBe(5);
  });

  it("finds round ticks", () => {
    expect(ticks([0, 1])).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks([0.76, 0.93])).toEqual([0.8, 0.85, 0.9]);
    expect(ticks([5, 5])).toEqual([5]);
  });

  it("pads a range, and a single value too", () => {
    expect(padded([1, 3], 0.1)).toEqual([0.8, 3.2]);
    expect(padded([2], 0.5)).toEqual([1, 3]);
    expect(padded([0], 0.5)).toEqual([-1, 1]);
  });
});
