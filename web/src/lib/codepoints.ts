/**
 * The server counts Unicode code points, JavaScript strings UTF-16 units. Everything that crosses converts here.
 */

const SURROGATE = /[\ud800-\udfff]/;

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Number of code points in `text`; a lone surrogate counts as one. */
export function codePointLength(text: string): number {
  if (!SURROGATE.test(text)) return text.length;
  let count = 0;
  for (let i = 0; i < text.length; i += 1) {
    if (isHigh(text.charCodeAt(i)) && isLow(text.charCodeAt(i + 1))) i += 1;
    count += 1;
  }
  return count;
}

/**
 * UTF-16 indices of several code point offsets, which must be ascending; one pass over the text.
 */
export function unitOffsets(text: string, ascending: readonly number[]): number[] {
  if (!SURROGATE.test(text)) return ascending.map((offset) => Math.min(Math.max(offset, 0), text.length));
  const units: number[] = [];
  let unit = 0;
  let point = 0;
  for (const offset of ascending) {
    while (point < offset && unit < text.length) {
      unit += isHigh(text.charCodeAt(unit)) && isLow(text.charCodeAt(unit + 1)) ? 2 : 1;
      point += 1;
    }
    units.push(unit);
  }
  return units;
}

/** `text` cut at code points `[start, end)`: what lies before, inside and after. */
export function splitAround(text: string, start: number, end: number): [before: string, inside: string, after: string] {
  const [from = 0, to = 0] = unitOffsets(text, [start, Math.max(start, end)]);
  return [text.slice(0, from), text.slice(from, to), text.slice(to)];
}
