/** What ingest found in a document, in words; kinds of embedded instructions are gathered into one line. */
export function flagLines(flags: readonly string[]): string[] {
  const counts = (of: string) => flags.flatMap((flag) => (flag.startsWith(`${of}:`) ? flag.slice(of.length + 1) : []));
  const kinds = flags.filter((flag) => !/^(stripped|ocr|unread):\d+$/.test(flag));
  const lines = kinds.length === 0 ? [] : [`Has text that reads like instructions to a model (${kinds.join(", ")}); it is treated as text.`];
  return [
    ...lines,
    ...counts("stripped").map((n) => `${n} invisible characters were removed.`),
    ...counts("ocr").map((n) => `Read by OCR: ${n} ${n === "1" ? "page" : "pages"}; letters and figures may be wrong.`),
    ...counts("unread").map((n) => `${n} ${n === "1" ? "page is a picture" : "pages are pictures"} whose text is not read yet.`),
  ];
}
