import type { AnswerRecord } from "@/api/types";

/** Where a source differs from one of the other library: the sentence, and the other's number. */
export interface Difference {
  other: number;
  start: number;
  end: number;
}

/** The differences of each source of an answer, by its number. */
export function differencesOf(answer: AnswerRecord | null): ReadonlyMap<number, readonly Difference[]> {
  const found = new Map<number, Difference[]>();
  for (const { paper, article } of answer?.trace?.disagreements ?? []) {
    for (const [own, other] of [
      [paper, article],
      [article, paper],
    ] as const) {
      const known = found.get(own.n) ?? [];
      if (!known.some((one) => one.other === other.n && one.start === own.start)) known.push({ other: other.n, start: own.start, end: own.end });
      found.set(own.n, known);
    }
  }
  return found;
}
