import { describe, expect, it } from "vitest";
import { dense, isHeaded } from "@/lib/passage";

describe("a passage on a card", () => {
  it.each([
    ["4 Results\n\nScore fusion exceeded it.", true],
    ["Traffic\nThe harbour handled 412 ships.", true],
    ["City | Hotel limit\nCity: Oslo | Hotel limit: 165 euros", false],
    ["The valve is checked.\nIt is old.", false],
    ["One line that says it all", false],
    ["A Corpus of Read Questions\nfor Local Assistants\n\nWe present AloudQ.", false],
    ["Open\nOn Mondays", true],
  ])("%j begins with a heading: %s", (text, headed) => {
    expect(isHeaded(text)).toBe(headed);
  });

  it("has no blank lines", () => {
    expect(dense("A\n\nB\n\n\nC\nD")).toBe("A\nB\nC\nD");
  });
});
