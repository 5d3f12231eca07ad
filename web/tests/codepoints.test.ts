import { describe, expect, it } from "vitest";
import { codePointLength, splitAround, unitOffsets } from "@/lib/codepoints";

const SAMPLES = ["", "plain", "é and e\u0301", "🎉", "a🎉b", "🧑‍🚀 walks", "日本語 𠮷野家", "flag 🇪🇸 end", "\ud83c lone", "tail \udf89"];

describe("code points", () => {
  it("agrees with the string iterator on every prefix", () => {
    for (const text of SAMPLES) {
      const points = Array.from(text);
      expect(codePointLength(text)).toBe(points.length);
      for (let n = 0; n <= points.length; n += 1) expect(unitOffsets(text, [n])[0]).toBe(points.slice(0, n).join("").length);
    }
  });

  it("slices like a list of code points", () => {
    for (const text of SAMPLES) {
      const points = Array.from(text);
      for (let start = 0; start <= points.length; start += 1) {
        for (let end = start; end <= points.length; end += 1) expect(splitAround(text, start, end)[1]).toBe(points.slice(start, end).join(""));
      }
    }
  });

  it("puts three parts together to the whole", () => {
    expect(splitAround("a🎉bc", 1, 2)).toEqual(["a", "🎉", "bc"]);
    for (const text of SAMPLES) expect(splitAround(text, 1, 3).join("")).toBe(text);
  });

  it("clamps what lies outside", () => {
    expect(splitAround("🎉🎉", 1, 99)[1]).toBe("🎉");
    expect(unitOffsets("🎉", [0, 1, 2, 50])).toEqual([0, 2, 2, 2]);
    expect(unitOffsets("ab", [-3, 5])).toEqual([0, 2]);
  });
});
