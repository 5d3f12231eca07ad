import type { Reading } from "@/lib/exchange";
import { count, modelName, seconds as duration } from "@/lib/format";

/** "llama3.2 is reading about 1,300 tokens, about 9 s"; both numbers are estimates and look like it. */
export function readingLine({ model, tokens, seconds }: Pick<Reading, "model" | "tokens" | "seconds">): string {
  const line = `${modelName(model)} is reading about ${count(Number(tokens.toPrecision(2)))} tokens`;
  if (seconds === null) return line;
  return `${line}, about ${seconds < 60 ? `${Math.max(1, Math.round(seconds))} s` : duration(seconds)}`;
}
