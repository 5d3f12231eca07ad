import { t } from "@/lib/language";

/** What ingest found in a document, in words; kinds of embedded instructions are gathered into one line. */
export function flagLines(flags: readonly string[]): string[] {
  const counts = (of: string) => flags.flatMap((flag) => (flag.startsWith(`${of}:`) ? Number(flag.slice(of.length + 1)) : []));
  const kinds = flags.filter((flag) => !/^(stripped|ocr|unread|unplaced):\d+$/.test(flag));
  const lines = kinds.length === 0 ? [] : [t("Has text that reads like instructions to a model ({kinds}); it is treated as text.", { kinds: kinds.join(", ") })];
  return [
    ...lines,
    ...counts("stripped").map((n) => t("{n} invisible characters were removed.", { n })),
    ...counts("ocr").map((n) => t("Read by OCR: {n} pages; letters and figures may be wrong.", { n })),
    ...counts("unplaced").map((n) => t("{n} corrections do not fit what is read now; they are listed under Correct.", { n })),
    ...counts("unread").map((n) => t("{n} pages are pictures whose text is not read yet.", { n })),
  ];
}
