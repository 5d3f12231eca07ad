import { expect, test } from "vitest";
import type { AnswerRecord } from "@/api/types";
import { citationWords, confidenceOf, supportOf } from "@/lib/trust";

function answer(part: object): AnswerRecord {
  return { confidence: 0.9, notices: [], sources: [], sentences: [], trace: null, ...part } as unknown as AnswerRecord;
}

test("a high probability needs no reason, a low one says why", () => {
  expect(confidenceOf(answer({}))).toMatchObject({ words: "sure", tone: "good", why: null });
  expect(confidenceOf(answer({})).title).toContain("0.90");
  const low = answer({ confidence: 0.31, notices: [{ code: "context_cut", message: "" }, { code: "fallback_used", message: "" }] });
  expect(confidenceOf(low)).toMatchObject({ words: "not sure", tone: "bad", why: "no passage comes close to the question" });
  expect(confidenceOf(answer({ confidence: 0.6 })).why).toBe("the passages match the question only in part");
  expect(confidenceOf(answer({ confidence: 0.6, sources: [{ band: "strong" }] })).why).toBe("the passages are close, yet may not hold the answer");
});

test("support is told in words, headings do not count", () => {
  const of = (...verdicts: string[]) => supportOf(answer({ sentences: verdicts.map((verdict) => ({ verdict })) }));
  expect(of("supported", "no_claim")).toMatchObject({ words: "Supported", title: "1 of 1 sentence supported by a source", why: null });
  expect(of("supported", "not_found")).toMatchObject({ words: "Partly supported", tone: "bad", why: "1 sentence is held by no source" });
  expect(of("supported", "unsure")).toMatchObject({ words: "Partly supported", tone: "warn", why: "1 sentence may stand in a source" });
  expect(of("unsure", "unsure")).toMatchObject({ words: "Not confirmed", tone: "warn", why: "2 sentences may stand in a source" });
  expect(of("not_found")).toMatchObject({ words: "Not supported", tone: "bad", why: "1 sentence is held by no source" });
});

test("a citation's support is told in words with its number", () => {
  expect([1, 0.9, 0.44].map(citationWords)).toEqual(["word for word (1.00)", "supported (0.90)", "may say it, not confirmed (0.44)"]);
});
