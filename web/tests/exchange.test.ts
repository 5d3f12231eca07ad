import { describe, expect, it } from "vitest";
import type { AnswerRecord, QuoteRecord, SentenceRecord, SourceRecord } from "@/api/types";
import { asked, received, shownOf, type Exchange } from "@/lib/exchange";
import { readingLine } from "@/lib/reading";

function source(n: number): SourceRecord {
  return { n, title: `Source ${n}` } as SourceRecord;
}

function sentence(text: string, answer_start: number, n: number): SentenceRecord {
  const citation = { n, start: 0, end: 5, quote: "Bees…", support: 1, cited_by: "engine" as const };
  return { text, answer_start, answer_end: answer_start + Array.from(text).length, verdict: "supported", citations: [citation] };
}

const SAID = "🐝 Bees dance [3].";
const WORDS = "They show the way [3].";

function quoted(leads: boolean): QuoteRecord {
  return { text: SAID, sentences: [sentence(SAID, 0, 3)], leads };
}

function answer(text: string, quote: QuoteRecord | null, sentences: SentenceRecord[], codes: string[] = []): AnswerRecord {
  const notices = codes.map((code) => ({ code, message: "" }));
  return { answer_id: "a", answer: text, quote, sentences, notices, sources: [source(3)], library: "public" } as unknown as AnswerRecord;
}

function begun(leads: boolean): Exchange {
  const found = received(asked("1", "How do bees talk?", "public", []), { kind: "sources", sources: [source(1), source(3)] });
  const read = received(received(found, { kind: "quote", quote: quoted(leads) }), { kind: "reading", model: "m", tokens: 900, seconds: 3, part: 1, parts: 1, waits_for: null });
  return leads ? received(read, { kind: "token", text: `${SAID}\n\n` }) : read;
}

describe("a stream with a quote", () => {
  it.each([true, false])("shows the quote once while the model reads (leads: %s)", (leads) => {
    const shown = shownOf(begun(leads));
    expect(shown.quote?.text).toBe(SAID);
    expect(shown.place).toBe(leads ? "above" : "under");
    expect(shown.words.text).toBe("");
    expect(begun(leads).reading).toMatchObject({ model: "m", tokens: 900, seconds: 3, part: 1, parts: 1 });
  });

  it.each([true, false])("puts the words below a quote that leads and above another as they come (leads: %s)", (leads) => {
    const shown = shownOf(received(begun(leads), { kind: "token", text: "They show" }));
    expect([shown.quote?.text, shown.place, shown.words.text]).toEqual([SAID, leads ? "above" : "under", "They show"]);
  });

  it("has the quote alone where the model was stopped before its first word", () => {
    const shown = shownOf({ ...begun(false), state: "stopped" });
    expect([shown.quote?.text, shown.place, shown.words.text]).toEqual([SAID, "above", ""]);
  });

  it("keeps quote and words apart in an answer that begins with the quote, offsets in code points", () => {
    const whole = `${SAID}\n\n${WORDS}`;
    const at = Array.from(`${SAID}\n\n`).length;
    const final = received(begun(true), { kind: "final", answer: answer(whole, quoted(true), [sentence(SAID, 0, 3), sentence(WORDS, at, 3)]) });
    const shown = shownOf(final);
    expect(final.state).toBe("done");
    expect([shown.place, shown.words.text]).toEqual(["above", WORDS]);
    expect(shown.words.sentences).toHaveLength(1);
    expect(shown.words.sentences[0]).toMatchObject({ answer_start: 0, answer_end: WORDS.length });
  });

  it("does not call a source far that is quoted", () => {
    const far = [1, 3].map((n) => ({ ...source(n), band: "weak" as const }));
    const found = received(asked("1", "How do bees talk?", "public", []), { kind: "sources", sources: far });
    const read = received(found, { kind: "quote", quote: quoted(true) });
    expect(read.sources.map((one) => one.band)).toEqual(["weak", "partial"]);
  });

  it("folds the quote away under a model that speaks alone", () => {
    const shown = shownOf(received(begun(false), { kind: "final", answer: answer(WORDS, quoted(false), [sentence(WORDS, 0, 3)]) }));
    expect([shown.quote?.text, shown.place, shown.words.text]).toEqual([SAID, "under", WORDS]);
    expect(shown.words.sentences[0]?.citations[0]?.n).toBe(3);
  });

  it("shows the quote and no words where it stands for the model's answer", () => {
    const shown = shownOf(received(begun(false), { kind: "final", answer: answer(SAID, quoted(false), [sentence(SAID, 0, 3)], ["quoted_instead"]) }));
    expect([shown.quote?.text, shown.place, shown.words.text]).toEqual([SAID, "above", ""]);
  });

  it("shows a refusal without the quote", () => {
    const shown = shownOf(received(begun(true), { kind: "final", answer: answer("I don't know.", null, []) }));
    expect([shown.quote, shown.words.text]).toEqual([null, "I don't know."]);
  });

  it("drops a quote whose source another search no longer has, and keeps one that stands", () => {
    expect(received(begun(true), { kind: "sources", sources: [source(1), source(7)] }).quote).toBeNull();
    expect(received(begun(true), { kind: "sources", sources: [source(3), source(7)] }).quote?.text).toBe(SAID);
  });
});

describe("what a model reads", () => {
  it("is said in round numbers", () => {
    expect(readingLine({ model: "ollama:llama3.2", tokens: 1312, seconds: 9.3, part: 1, parts: 1, waitsFor: "queue" })).toBe("llama3.2 answers another question first");
    expect(readingLine({ model: "ollama:llama3.2", tokens: 1312, seconds: 9.3, part: 1, parts: 1, waitsFor: null })).toBe("llama3.2 is reading about 1,300 tokens, about 9 s");
    expect(readingLine({ model: "m", tokens: 348, seconds: 0.2, part: 1, parts: 1, waitsFor: null })).toBe("m is reading about 350 tokens, about 1 s");
    expect(readingLine({ model: "m", tokens: 20_512, seconds: 150, part: 1, parts: 1, waitsFor: null })).toBe("m is reading about 21,000 tokens, about 3 min");
    expect(readingLine({ model: "m", tokens: 348, seconds: null, part: 1, parts: 1, waitsFor: null })).toBe("m is reading about 350 tokens");
    expect(readingLine({ model: "m", tokens: 900, seconds: 9, part: 1, parts: 20, waitsFor: null })).toBe("m is reading part 1 of 20, about 900 tokens, about 9 s; all of it about 3 min");
  });
});
