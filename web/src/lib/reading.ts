import type { WaitsFor } from "@/api/stream";
import type { Reading } from "@/lib/exchange";
import { modelName, seconds as duration } from "@/lib/format";
import { type Message, t } from "@/lib/language";

/** What a model does that has no first word yet. */
const WAITING: Record<WaitsFor, Message> = {
  reading: "{model} is still reading",
  loading: "{model} is being loaded into memory",
  queue: "{model} answers another question first",
  silent: "{model} says nothing: its host does not respond; still waiting",
};

const rough = (time: number): string => (time < 60 ? `${Math.max(1, Math.round(time))} s` : duration(time));

/** "llama3.2 is reading part 2 of 7, about 1,300 tokens, about 9 s"; tokens and seconds are estimates and look like it. Of several parts the first says how long all take. */
export function readingLine({ model, tokens, seconds, part, parts, waitsFor }: Omit<Reading, "since">): string {
  if (waitsFor !== null) return t(WAITING[waitsFor], { model: modelName(model) });
  const values = { model: modelName(model), part, parts, tokens: Number(tokens.toPrecision(2)) };
  const line = parts > 1 ? t("{model} is reading part {part} of {parts}, about {tokens} tokens", values) : t("{model} is reading about {tokens} tokens", values);
  if (seconds === null) return line;
  const whole = parts > 1 && part === 1 ? `; ${t("all of it about {time}", { time: rough(parts * seconds) })}` : "";
  return `${line}, ${t("about {time}", { time: rough(seconds) })}${whole}`;
}
