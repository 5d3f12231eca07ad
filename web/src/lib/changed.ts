/** A piece of a text, and whether the other text lacks its word. */
export interface Piece {
  text: string;
  changed: boolean;
}

const WORD = /[\p{L}\p{N}]+/gu;

/** The pieces of a text, its words marked that another text has not. Neighbours of one kind are one piece. */
export function changedWords(text: string, other: string): Piece[] {
  const known = new Set((other.match(WORD) ?? []).map((word) => word.toLowerCase()));
  const pieces: Piece[] = [];
  const add = (part: string, changed: boolean): void => {
    const last = pieces.at(-1);
    if (last?.changed === changed) last.text += part;
    else if (part !== "") pieces.push({ text: part, changed });
  };
  let at = 0;
  for (const word of text.matchAll(WORD)) {
    add(text.slice(at, word.index), false);
    add(word[0], !known.has(word[0].toLowerCase()));
    at = word.index + word[0].length;
  }
  add(text.slice(at), false);
  return pieces;
}
