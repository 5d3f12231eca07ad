import { describe, expect, it } from "vitest";
import type { CheckedSentence, CheckReport } from "@/api/types";
import { withSentence } from "@/lib/recheck";

const TEXT = "🍐 is one. Two is two. Three.";

function sentence(text: string, start: number, verdict: CheckedSentence["verdict"]): CheckedSentence {
  return { text, start, end: start + Array.from(text).length, verdict, support: 0, citations: [], better: null, by_reader: verdict, judged: null, cites: [] };
}

function report(...sentences: CheckedSentence[]): CheckReport {
  const counts = { supported: 0, unsure: 0, contradicted: 0, not_found: 0, no_claim: 0 };
  for (const { verdict } of sentences) counts[verdict] += 1;
  return { sentences, counts, check_by: "reader", judge: null, judge_failed: null, references: [] };
}

const CHECKED = report(sentence("🍐 is one.", 0, "supported"), sentence("Two is two.", 10, "not_found"), sentence("Three.", 22, "unsure"));

describe("a sentence that is checked again", () => {
  it("takes the place of the old one, in the text and in what was found", () => {
    const now = withSentence({ text: TEXT, report: CHECKED }, 1, "Two 🍐 is 2. Yes.", report(sentence("Two 🍐 is 2.", 0, "supported"), sentence("Yes.", 12, "no_claim")));
    expect(now.text).toBe("🍐 is one. Two 🍐 is 2. Yes. Three.");
    expect(now.report.counts).toEqual({ supported: 2, unsure: 1, contradicted: 0, not_found: 0, no_claim: 1 });
    const points = Array.from(now.text);
    for (const one of now.report.sentences) expect(points.slice(one.start, one.end).join("")).toBe(one.text);
  });

  it("leaves a text alone that was changed by hand since", () => {
    const now = withSentence({ text: `So: ${TEXT}`, report: CHECKED }, 1, "Two is 2.", report(sentence("Two is 2.", 0, "supported")));
    expect(now.text).toBe(`So: ${TEXT}`);
    expect(now.report.counts.supported).toBe(2);
  });
});
