import type { WaitsFor } from "@/api/stream";
import type { Reading } from "@/lib/exchange";
import { count, modelName, seconds as duration } from "@/lib/format";

/** What a model does that has no first word yet. */
const WAITING: Record<WaitsFor, string> = {
  reading: "is still reading",
  loading: "is being loaded into memory",
  queue: "answers another question first",
  silent: "says nothing: its host does not respond; still waiting",
};

/** "llama3.2 is reading part 2 of 7, about 1,300 tokens, about 9 s"; tokens and seconds are estimates and look like it. */
export function readingLine({ model, tokens, seconds, part, parts, waitsFor }: Omit<Reading, "since">): string {
  if (waitsFor !== null) return `${modelName(model)} ${WAITING[waitsFor]}`;
  const which = parts > 1 ? `part ${part} of ${parts}, ` : "";
  const line = `${modelName(model)} is reading ${which}about ${count(Number(tokens.toPrecision(2)))} tokens`;
  if (seconds === null) return line;
  return `${line}, about ${seconds < 60 ? `${Math.max(1, Math.round(seconds))} s` : duration(seconds)}`;
}
