import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { models } from "@/api/queries";
import type { EvidenceKind } from "@/api/types";
import { FilterBar } from "@/components/filter-bar";
import { Button } from "@/components/ui/button";
import { Select } from "@/components/ui/field";
import { Popover } from "@/components/ui/menu";
import { CONTROLS, useChat } from "@/hooks/use-chat";
import { MODE_NAMES, optionsOf, STRATEGY_NAMES } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { adviceOn, chatModels } from "@/lib/models";

/** The set is the contract's: a name that is missing or unknown does not compile. */
const READING: Record<EvidenceKind | "default", Message> = {
  default: "As the server is set",
  auto: "Fitted to the model",
  short: "Sentences",
  full: "Whole passages",
};

/** How the next question is answered, behind one button; what is not as usual stands on it. */
export function ChatControls() {
  const { controls, setControls } = useChat();
  const { data } = useQuery(models);
  const installed = chatModels(data);
  const changed = [
    controls.mode === CONTROLS.mode ? "" : t(MODE_NAMES[controls.mode]),
    controls.strategy === null ? "" : t("Search"),
    controls.model ?? "",
    controls.evidence === null ? "" : t("Reading"),
    controls.nearest ? t("nearest") : "",
  ].filter(Boolean);
  return (
    <Popover
      label={t("Options")}
      trigger={
        <Button look="quiet" icon="sliders" className="min-w-0 text-xs font-normal">
          <span className="truncate">{[t("Options"), ...changed].join(" · ")}</span>
        </Button>
      }
    >
      <div className="flex flex-col gap-3 p-2">
        <dl className="flex flex-col gap-3">
        <Option name={t("Kind of answer")} says={t("A plain answer fits nearly every question.")}>
          <Select label={t("Mode")} value={controls.mode} options={optionsOf(MODE_NAMES)} onValue={(mode) => setControls({ mode })} />
        </Option>
        {installed.length > 0 && (
          <Option name={t("Model")} says={adviceOn(controls.model, data, t("Who writes the answer."))}>
            <Select
              label={t("Model")}
              value={controls.model ?? ""}
              options={[{ value: "", label: t("The one in use") }, ...installed.map((name) => ({ value: name, label: name }))]}
              onValue={(model) => setControls({ model: model === "" ? null : model })}
            />
          </Option>
        )}
        <Option name={t("Search")} says={t("How passages are looked for. Other ways ask a model first and take longer.")}>
          <Select label={t("Search by")} value={controls.strategy ?? "default"} options={optionsOf({ default: "As the server is set", ...STRATEGY_NAMES })} onValue={(strategy) => setControls({ strategy: strategy === "default" ? null : strategy })} />
        </Option>
        <Option name={t("Reading")} says={t("How much of your documents a model reads for one answer.")}>
          <Select label={t("Reading")} value={controls.evidence ?? "default"} options={optionsOf(READING)} onValue={(evidence) => setControls({ evidence: evidence === "default" ? null : evidence })} />
        </Option>
        </dl>
        <label className="flex items-start gap-2 text-sm">
          <input type="checkbox" checked={controls.nearest} onChange={(event) => setControls({ nearest: event.target.checked })} className="mt-1 accent-accent" />
          <span>
            {t("Answer from what is nearest")}
            <span className="block text-xs text-muted">{t("Where no passage fits well, a model reads the closest ones, and the answer says so.")}</span>
          </span>
        </label>
        <FilterBar />
        {changed.length > 0 && (
          <Button look="quiet" icon="undo" className="self-start" onClick={() => setControls(CONTROLS)}>
            {t("As usual")}
          </Button>
        )}
      </div>
    </Popover>
  );
}

function Option({ name, says, children }: { name: string; says: string; children: ReactNode }) {
  return (
    <div className="grid gap-x-3 sm:grid-cols-[1fr_11rem] sm:items-center">
      <dt className="text-sm">
        {name}
        <span className="block text-xs text-muted">{says}</span>
      </dt>
      <dd className="flex [&>span]:w-full [&_select]:border-line-strong [&_select]:text-ink">{children}</dd>
    </div>
  );
}
