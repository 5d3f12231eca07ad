/** Lines of a passage without blank ones between them. */
export function dense(text: string): string {
  return text.replace(/\n{2,}/g, "\n");
}

/** Whether a passage begins with a heading of one line: a short line that ends like none of a text, with text below it. */
export function isHeaded(text: string): boolean {
  const [first = "", second, ...more] = text.trimStart().split("\n");
  if (second === undefined || !isHeading(first)) return false;
  return second === "" || more.length === 0 || !isHeading(second);
}

function isHeading(line: string): boolean {
  return line.length <= 60 && !/[.!?:;,|]\s*$|\|/.test(line);
}
