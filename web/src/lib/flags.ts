/** What ingest found in a document, in words; kinds of embedded instructions are gathered into one line. */
export function flagLines(flags: readonly string[]): string[] {
  const stripped = flags.flatMap((flag) => /^stripped:(\d+)$/.exec(flag)?.[1] ?? []);
  const kinds = flags.filter((flag) => !flag.startsWith("stripped:"));
  const lines = kinds.length === 0 ? [] : [`Has text that reads like instructions to a model (${kinds.join(", ")}); it is treated as text.`];
  return [...lines, ...stripped.map((n) => `${n} invisible characters were removed.`)];
}
