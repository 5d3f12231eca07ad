import type { ContextRecord } from "@/api/types";
import { Tag } from "@/components/ui/tag";
import { type Message, t } from "@/lib/language";

const PROMPTS: Record<string, Message> = { compact: "compact: few words, the question last", full: "full: the whole contract" };
const EVIDENCE: Record<string, Message> = { short: "Sentences", full: "Whole passages" };

/** What a model was handed and why: tokens planned and seen against the budget, sources used, trimmed, dropped. */
export function ContextBudget({ context }: { context: ContextRecord | null }) {
  if (context === null) return <p className="text-sm text-muted">{t("No model read a context for this answer.")}</p>;
  const prompt = PROMPTS[context.prompts];
  const evidence = EVIDENCE[context.evidence];
  const bars: [Message, number | null, string][] = [
    ["Planned", context.planned, "bg-accent"],
    ["Seen by the model", context.seen, "bg-good"],
  ];
  const lists: [Message, number[], "good" | "warn" | "bad"][] = [
    ["Used", context.used, "good"],
    ["Trimmed", context.trimmed, "warn"],
    ["Dropped", context.dropped, "bad"],
  ];
  const handed: [Message, string][] = [
    ["Prompt", prompt === undefined ? context.prompts : t(prompt)],
    ["Evidence", evidence === undefined ? context.evidence : t(evidence)],
    ["Why", context.why],
  ];
  return (
    <div className="flex flex-col gap-3 text-xs">
      <dl className="flex flex-col gap-1.5">
        {handed
          .filter(([, text]) => text !== "")
          .map(([name, text]) => (
            <div key={name} className="grid grid-cols-[8rem_1fr] gap-2">
              <dt className="text-muted">{t(name)}</dt>
              <dd>{text}</dd>
            </div>
          ))}
      </dl>
      <dl className="flex flex-col gap-1.5">
        {bars.map(([name, tokens, colour]) => (
          <div key={name} className="grid grid-cols-[8rem_1fr_9rem] items-center gap-2">
            <dt className="text-muted">{t(name)}</dt>
            <dd className="col-span-2 grid grid-cols-subgrid items-center">
              <span aria-hidden="true" className="h-2 rounded-sm bg-sunken">
                <span className={`block h-full rounded-sm ${colour}`} style={{ width: `${Math.min(1, (tokens ?? 0) / Math.max(1, context.budget)) * 100}%` }} />
              </span>
              <span className="text-right tabular-nums">{tokens === null ? t("not reported") : t("{tokens} of {budget} tokens", { tokens, budget: context.budget })}</span>
            </dd>
          </div>
        ))}
      </dl>
      <dl className="flex flex-col gap-1.5">
        {lists.map(([name, numbers, tone]) => (
          <div key={name} className="grid grid-cols-[8rem_1fr] gap-2">
            <dt className="text-muted">{t(name)}</dt>
            <dd className="flex flex-wrap gap-1">
              {numbers.length === 0
                ? t("none")
                : numbers.map((n) => (
                    <Tag key={n} tone={tone}>
                      {n}
                    </Tag>
                  ))}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
