import { expect, test } from "vitest";
import { changedWords } from "@/lib/changed";

test("words that the other text lacks are marked, signs and blanks are not", () => {
  expect(changedWords("The pump costs 900 euros.", "The pump is sold for 800 euros.")).toEqual([
    { text: "The pump ", changed: false },
    { text: "costs", changed: true },
    { text: " ", changed: false },
    { text: "900", changed: true },
    { text: " euros.", changed: false },
  ]);
  expect(changedWords("Größe", "größe")).toEqual([{ text: "Größe", changed: false }]);
  expect(changedWords("", "x")).toEqual([]);
});
