import type { Highlight } from "@/api/types";
import { unitOffsets } from "@/lib/codepoints";

export interface Piece {
  text: string;
  marked: boolean;
}

/** Text cut at its matched words; overlapping and out-of-order highlights are merged. Offsets are code points. */
export function highlightPieces(text: string, highlights: readonly Highlight[]): Piece[] {
  const merged: Highlight[] = [];
  for (const one of [...highlights].sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last !== undefined && one.start <= last.end) last.end = Math.max(last.end, one.end);
    else if (one.end > one.start) merged.push({ ...one });
  }
  const units = unitOffsets(text, merged.flatMap((h) => [h.start, h.end]));
  const pieces: Piece[] = [];
  let from = 0;
  merged.forEach((_, i) => {
    const start = units[2 * i] ?? 0;
    const end = units[2 * i + 1] ?? 0;
    if (start > from) pieces.push({ text: text.slice(from, start), marked: false });
    if (end > start) pieces.push({ text: text.slice(start, end), marked: true });
    from = end;
  });
  if (from < text.length) pieces.push({ text: text.slice(from), marked: false });
  return pieces;
}
