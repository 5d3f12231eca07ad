import { expect, it } from "vitest";
import { flagLines } from "@/lib/flags";

it("says what ingest found in words", () => {
  expect(flagLines([])).toEqual([]);
  expect(flagLines(["request", "stripped:12", "question"])).toEqual([
    "Has text that reads like instructions to a model (request, question); it is treated as text.",
    "12 invisible characters were removed.",
  ]);
});
