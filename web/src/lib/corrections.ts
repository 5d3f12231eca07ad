import { codePointLength } from "@/lib/codepoints";

/** Characters `[start, end)` of a stored text, in code points, and what is to stand there. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Above as many pairs of words what was changed is one edit: comparing them all would halt the page. */
const MOST_PAIRS = 4_000_000;

/** What makes one text of another, word by word; `offset` is where the text begins in its document. */
export function editsOf(before: string, after: string, offset: number): Edit[] {
  const old = words(before);
  const now = words(after);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const gone = old.slice(head, old.length - tail);
  const come = now.slice(head, now.length - tail);
  let at = offset + codePointLength(old.slice(0, head).join(""));
  const edits: Edit[] = [];
  for (const [taken, given] of changes(gone, come)) {
    const end = at + codePointLength(taken);
    if (taken !== given) edits.push({ start: at, end, text: given });
    at = end;
  }
  return edits;
}

/** Words, and each other character by itself. */
function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]/gu) ?? [];
}

/** Pieces of both texts in order: equal ones, and what stands in the place of what, by their longest common sequence of words. */
function changes(old: readonly string[], now: readonly string[]): [taken: string, given: string][] {
  if (old.length * now.length > MOST_PAIRS) return [[old.join(""), now.join("")]];
  const width = now.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
    }
  }
  const found: [string, string][] = [];
  let taken = "";
  let given = "";
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && old[i] === now[j]) {
      found.push([taken, given], [old[i] ?? "", now[j] ?? ""]);
      [taken, given] = ["", ""];
      [i, j] = [i + 1, j + 1];
    } else if (j >= now.length || (i < old.length && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))) {
      taken += old[i] ?? "";
      i += 1;
    } else {
      given += now[j] ?? "";
      j += 1;
    }
  }
  return [...found, [taken, given]];
}
