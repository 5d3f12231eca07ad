import { describe, expect, it } from "vitest";
import { highlightPieces } from "@/features/search/highlight-pieces";

describe("highlight pieces", () => {
  it("merges overlaps, sorts, and counts code points", () => {
    const pieces = highlightPieces("🎉 red green blue", [
      { start: 6, end: 11 },
      { start: 2, end: 5 },
      { start: 8, end: 13 },
    ]);
    expect(pieces).toEqual([
      { text: "🎉 ", marked: false },
      { text: "red", marked: true },
      { text: " ", marked: false },
      { text: "green b", marked: true },
      { text: "lue", marked: false },
    ]);
    expect(pieces.map((p) => p.text).join("")).toBe("🎉 red green blue");
  });

  it("is one piece without highlights", () => {
    expect(highlightPieces("text", [])).toEqual([{ text: "text", marked: false }]);
    expect(highlightPieces("", [])).toEqual([]);
  });
});
