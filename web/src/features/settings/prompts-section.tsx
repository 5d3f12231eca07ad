import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { prompts } from "@/api/queries";
import type { Mode } from "@/api/types";
import { Segmented, Select } from "@/components/ui/field";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { MODE_NAMES, optionsOf } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const SIZES = { full: "For larger models", compact: "For small models" } as const satisfies Record<string, Message>;
const ROLES: Record<"system" | "user" | "assistant", Message> = { system: "Instruction", user: "Question", assistant: "Answer" };

/** What a model is told for each kind of answer, as it is sent. */
export function PromptsSection() {
  const [mode, setMode] = useState<Mode>("general");
  const [size, setSize] = useState<keyof typeof SIZES>("full");
  const { data, error, isPending } = useQuery(prompts(mode));
  // The list of data sets is read out of the documents: no model is asked.
  const modes = optionsOf(MODE_NAMES).filter(({ value }) => value !== "datasets");
  return (
    <Section title={t("Prompts")}>
      <details className="text-sm">
        <summary className="text-muted hover:text-ink">{t("What a model is told, word for word. Files in PROMPTS_DIR take its place.")}</summary>
        <div className="mt-3 flex flex-wrap items-center gap-2 [&_select]:border-line-strong [&_select]:text-ink">
          <Select label={t("Kind of answer of the prompt")} value={mode} options={modes} onValue={setMode} />
          <Segmented label={t("Size of the model")} value={size} options={optionsOf(SIZES)} onValue={setSize} />
        </div>
        {isPending && <Skeleton lines={4} />}
        {error !== null && <Failure error={error} />}
        {data !== undefined && (
          <>
            {data.own.length > 0 && <p className="mt-2 text-xs text-muted">{t("Your own: {files}", { files: data.own.join(", ") })}</p>}
            <ol aria-label={t("The prompt")} className="mt-3 flex flex-col gap-2">
              {data[size].map((message, at) => (
                <li key={at} className="rounded-md border border-line bg-sunken p-3">
                  <p className="mb-1 text-xs font-semibold text-muted">{t(ROLES[message.role])}</p>
                  <p className="font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">{message.content}</p>
                </li>
              ))}
            </ol>
          </>
        )}
      </details>
    </Section>
  );
}
