import { t } from "@/lib/language";
/** What ingest found in a document, in words; kinds of embedded instructions are gathered into one line. */
export function flagLines(flags: readonly string[]): string[] {
  const stripped = flags.flatMap((flag) => /^stripped:(\d+)$/.exec(flag)?.[1] ?? []);
  const kinds = flags.filter((flag) => !flag.startsWith("stripped:"));
  const lines = kinds.length === 0 ? [] : [t("Has text that reads like instructions to a model ({kinds}); it is treated as text.", { kinds: kinds.join(", ") })];
  return [...lines, ...stripped.map((n) => t("{n} invisible characters were removed.", { n: Number(n) }))];
}
