import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { FlagTag } from "@/components/flag-tag";
import { flagLines } from "@/lib/flags";

it("says what ingest found in words", () => {
  expect(flagLines([])).toEqual([]);
  expect(flagLines(["request", "stripped:12", "question"])).toEqual([
    "Has text that reads like instructions to a model (request, question); it is treated as text.",
    "12 invisible characters were removed.",
  ]);
});

it("shows a tag only where there is something to say", () => {
  expect(renderToStaticMarkup(<FlagTag flags={[]} />)).toBe("");
  expect(renderToStaticMarkup(<FlagTag />)).toBe("");
  const html = renderToStaticMarkup(<FlagTag flags={["override"]} />);
  expect(html).toContain("flagged");
  expect(html).toContain("reads like instructions to a model (override)");
});
