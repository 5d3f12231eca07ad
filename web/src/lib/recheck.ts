import type { CheckedSentence, CheckReport } from "@/api/types";
import { codePointLength } from "@/lib/codepoints";

/** A text and what a check of it found. */
interface Checked {
  text: string;
  report: CheckReport;
}

/** Both with one sentence changed, and what a check of that sentence alone found; offsets are code points. */
export function withSentence({ text, report }: Checked, at: number, edited: string, found: CheckReport): Checked {
  const old = report.sentences[at];
  if (old === undefined) return { text, report };
  const moved = (sentence: CheckedSentence, by: number): CheckedSentence => ({ ...sentence, start: sentence.start + by, end: sentence.end + by });
  const longer = codePointLength(edited) - (old.end - old.start);
  const sentences = [
    ...report.sentences.slice(0, at),
    ...found.sentences.map((sentence) => moved(sentence, old.start)),
    ...report.sentences.slice(at + 1).map((sentence) => moved(sentence, longer)),
  ];
  const references = report.references.map((one) => (one.start > old.start ? { ...one, start: one.start + longer, end: one.end + longer } : one));
  const counts = { ...report.counts };
  for (const verdict of Object.keys(counts) as (keyof typeof counts)[]) counts[verdict] = sentences.filter((sentence) => sentence.verdict === verdict).length;
  const points = Array.from(text);
  // A text that was changed by hand since has the sentence elsewhere, or not at all.
  const stands = points.slice(old.start, old.end).join("") === old.text;
  return {
    text: stands ? [...points.slice(0, old.start), edited, ...points.slice(old.end)].join("") : text,
    report: { ...report, sentences, references, counts, judge_failed: report.judge_failed ?? found.judge_failed },
  };
}
