import type { AnswerRecord, SourceRecord } from "@/api/types";
import { citationWords } from "@/lib/trust";

/** A span of a document that an answer rests on, and what its mark says. */
export interface Mark {
  start: number;
  end: number;
  note: string;
}

/** Each cited document that has pages, with the spans that the answer cites. */
export function marksOf(answer: AnswerRecord): { source: SourceRecord; marks: Mark[] }[] {
  const found = new Map<string, { source: SourceRecord; marks: Mark[] }>();
  for (const sentence of answer.sentences) {
    for (const { n, start, end, support } of sentence.citations) {
      const source = answer.sources.find((one) => one.n === n);
      if (source === undefined || source.page === null) continue;
      const of = found.get(source.doc_id) ?? { source, marks: [] };
      found.set(source.doc_id, of);
      if (!of.marks.some((one) => one.start === start && one.end === end)) of.marks.push({ start, end, note: `${sentence.text.trim()}\n${citationWords(support)}` });
    }
  }
  return [...found.values()];
}
