import { describe, expect, it } from "vitest";
import type { AnswerRecord } from "@/api/types";
import { marksOf } from "@/lib/highlights";

const cites = (n: number, start: number): object => ({ n, start, end: start + 5, quote: "", support: 1, cited_by: "engine" });

describe("marks of an answer", () => {
  it("are the cited spans of documents with pages, each once", () => {
    const answer = {
      sources: [
        { n: 1, doc_id: "a", page: 2 },
        { n: 2, doc_id: "a", page: 3 },
        { n: 3, doc_id: "b", page: null },
      ],
      sentences: [
        { text: "One. ", citations: [cites(1, 10), cites(3, 0)] },
        { text: "Two.", citations: [cites(2, 40), cites(1, 10)] },
      ],
    } as unknown as AnswerRecord;
    const [found, ...others] = marksOf(answer);
    expect(others).toEqual([]);
    expect(found?.source.doc_id).toBe("a");
    expect(found?.marks.map(({ start, end }) => [start, end])).toEqual([
      [10, 15],
      [40, 45],
    ]);
    expect(found?.marks[0]?.note.startsWith("One.\n")).toBe(true);
  });
});
