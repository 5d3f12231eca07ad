/** Lines of a passage without blank ones between them. */
export function dense(text: string): string {
  return text.replace(/\n{2,}/g, "\n");
}

/** Whether a passage begins with a heading: a short line that ends like none of a text, with more below it. */
export function isHeaded(text: string): boolean {
  const [first = "", ...more] = text.trimStart().split("\n");
  return more.length > 0 && first.length <= 60 && !/[.!?:;,|]\s*$|\|/.test(first);
}
