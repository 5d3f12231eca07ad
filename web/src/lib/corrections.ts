import { codePointLength } from "@/lib/codepoints";

/** Characters `[start, end)` of a stored text, in code points, and what is to stand there. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** What was corrected, as edits of the text as it was read: to make the same of another reading of the file. */
export function asRead(corrections: readonly { start: number | null; before: string; text: string }[]): Edit[] {
  let gained = 0;
  return corrections.flatMap(({ start, before, text }) => {
    if (start === null) return [];
    const from = start - gained;
    gained += codePointLength(text) - codePointLength(before);
    return [{ start: from, end: from + codePointLength(before), text }];
  });
}

/** Above as many pairs of words what was changed is one edit: comparing them all would halt the page. */
const MOST_PAIRS = 4_000_000;

/** A run of words that both texts have, or what stands in the place of what. */
interface Piece {
  same: boolean;
  old: string[];
  now: string[];
}

/** What makes one text of another, in whole words; `offset` is where the text begins in its document. */
export function editsOf(before: string, after: string, offset: number): Edit[] {
  let at = offset;
  const edits: Edit[] = [];
  for (const piece of worded(pieces(words(before), words(after)))) {
    const start = at;
    at += codePointLength(piece.old.join(""));
    const last = edits.at(-1);
    if (piece.same) continue;
    if (last?.end === start) {
      last.end = at;
      last.text += piece.now.join("");
    } else edits.push({ start, end: at, text: piece.now.join("") });
  }
  return edits;
}

/** Words, and each other character by itself. */
function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]/gu) ?? [];
}

const WORD = /[\p{L}\p{N}]/u;

/** What was only put in or taken out takes the word beside it in, so that a person can read what was changed. */
function worded(found: readonly Piece[]): Piece[] {
  const all = found.map((piece) => ({ ...piece, old: [...piece.old], now: [...piece.now] }));
  all.forEach((piece, i) => {
    if (piece.same || (piece.old.length > 0 && piece.now.length > 0)) return;
    const [before, after] = [all[i - 1]?.old ?? [], all[i + 1]?.old ?? []];
    const from = before.findLastIndex((word) => WORD.test(word));
    if (from >= 0 && !before.slice(from).includes("\n")) {
      const taken = before.splice(from);
      piece.old.unshift(...taken);
      piece.now.unshift(...taken);
      return;
    }
    const to = after.findIndex((word) => WORD.test(word));
    if (to < 0 || after.slice(0, to).includes("\n")) return;
    const taken = after.splice(0, to + 1);
    piece.old.push(...taken);
    piece.now.push(...taken);
  });
  return all.filter((piece) => piece.old.length > 0 || (!piece.same && piece.now.length > 0));
}

/** Both texts in pieces: their longest common sequence of words, and what lies between. */
function pieces(old: readonly string[], now: readonly string[]): Piece[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const found: Piece[] = [];
  const put = (same: boolean, taken: readonly string[], given: readonly string[]): void => {
    const last = found.at(-1);
    if (last?.same === same) {
      last.old.push(...taken);
      last.now.push(...given);
    } else if (taken.length > 0 || given.length > 0) found.push({ same, old: [...taken], now: [...given] });
  };
  put(true, old.slice(0, head), now.slice(0, head));
  between(old.slice(head, old.length - tail), now.slice(head, now.length - tail), put);
  put(true, old.slice(old.length - tail), now.slice(now.length - tail));
  return found;
}

function between(old: readonly string[], now: readonly string[], put: (same: boolean, taken: readonly string[], given: readonly string[]) => void): void {
  if (old.length * now.length > MOST_PAIRS) {
    put(false, old, now);
    return;
  }
  const width = now.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  const commonAt = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j] ? commonAt(i + 1, j + 1) + 1 : Math.max(commonAt(i + 1, j), commonAt(i, j + 1));
    }
  }
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    const same = old[i] === now[j];
    const step = same ? [1, 1] : commonAt(i + 1, j) >= commonAt(i, j + 1) ? [1, 0] : [0, 1];
    const [a, b] = [i + (step[0] ?? 0), j + (step[1] ?? 0)];
    put(same, old.slice(i, a), now.slice(j, b));
    [i, j] = [a, b];
  }
  put(false, old.slice(i), now.slice(j));
}
