/** A linear map from a domain to a range of pixels. */
export function linear(domain: readonly [number, number], range: readonly [number, number]): (value: number) => number {
  const [d0, d1] = domain;
  const [r0, r1] = range;
  const width = d1 - d0;
  return (value) => (width === 0 ? (r0 + r1) / 2 : r0 + ((value - d0) / width) * (r1 - r0));
}

/** About `count` round numbers (1, 2 or 5 times a power of ten) inside the domain. */
export function ticks([from, to]: readonly [number, number], count = 5): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((s) => s >= rough) ?? 10 * power;
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The extent of the values, widened by a share of itself on both sides. */
export function padded(values: readonly number[], share = 0.08): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const pad = high > low ? (high - low) * share : Math.abs(high) * share || 1;
  return [low - pad, high + pad];
}
