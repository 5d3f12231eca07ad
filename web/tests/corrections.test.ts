import { expect, it } from "vitest";
import { asRead, editsOf } from "@/lib/corrections";

/** The text with its edits, whose places count code points. */
function applied(text: string, offset: number): (edits: ReturnType<typeof editsOf>) => string {
  return (edits) => {
    const points = Array.from(text);
    for (const { start, end, text: words } of [...edits].reverse()) points.splice(start - offset, end - start, words);
    return points.join("");
  };
}

it("names the words that were changed and no others", () => {
  expect(editsOf("The lamp bums at night.", "The lamp burns at dusk.", 100)).toEqual([
    { start: 109, end: 113, text: "burns" },
    { start: 117, end: 122, text: "dusk" },
  ]);
  expect(editsOf("The cat sa t.", "The cat sat.", 0)).toEqual([{ start: 8, end: 12, text: "sat" }]);
  expect(editsOf("A mercury bath carried it.", "A bath of quicksilver carried it.", 0)).toEqual([{ start: 0, end: 14, text: "A bath of quicksilver" }]);
  expect(editsOf("melts at 1085 K.", "melts slowly at 1085 K.", 0)).toEqual([{ start: 0, end: 6, text: "melts slowly " }]);
  expect(editsOf("same", "same", 0)).toEqual([]);
});

it("counts as the server does, and leaves the rest as it was", () => {
  const cases: [string, string][] = [
    ["𝒜 𝒜 wor1d 𝒜", "𝒜 𝒜 world 𝒜 𝒜"],
    ["a\nb\n\nc", "a b\n\nc d"],
    ["", "new"],
    ["gone words", ""],
    ["one two three", "three two one"],
  ];
  for (const [before, after] of cases) expect(applied(before, 7)(editsOf(before, after, 7))).toBe(after);
});

it("makes one edit of a text that was replaced whole", () => {
  const before = Array.from({ length: 3000 }, (_, i) => `a${i}`).join(" ");
  const after = Array.from({ length: 3000 }, (_, i) => `b${i}`).join(" ");
  expect(editsOf(before, after, 0)).toEqual([{ start: 0, end: before.length, text: after }]);
});

it("makes edits of what was read from corrections of what stands now", () => {
  const read = "The lamp bums, the keeper rovvs.";
  const corrections = [
    { start: 9, before: "bums", text: "burns brightly" },
    { start: null, before: "gone", text: "lost" },
    { start: 36, before: "rovvs", text: "rows" },
  ];
  expect(applied(read, 0)(asRead(corrections))).toBe("The lamp burns brightly, the keeper rows.");
});
