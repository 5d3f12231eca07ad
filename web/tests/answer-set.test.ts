import { describe, expect, it } from "vitest";
import { answerCases } from "@/lib/answer-set";

describe("answer sets", () => {
  it("reads one case a line and skips empty lines", () => {
    const text = '{"question": "Who?", "library": "papers"}\n\n{"question": "Hi", "library": "public", "intent": "chitchat"}\n';
    expect(answerCases(text).map((one) => one.question)).toEqual(["Who?", "Hi"]);
  });

  it("names the line that is no case", () => {
    expect(() => answerCases('{"question": "Who?", "library": "papers"}\nnot JSON')).toThrow("Line 2");
    expect(() => answerCases('{"question": "Who?"}')).toThrow("Line 1");
    expect(() => answerCases("null")).toThrow("Line 1");
    expect(() => answerCases("\n")).toThrow("no cases");
  });
});
