import { useQuery } from "@tanstack/react-query";
import { models } from "@/api/queries";
import type { EvidenceKind, Mode, Strategy } from "@/api/types";
import { Select } from "@/components/ui/field";
import { useChat } from "@/hooks/use-chat";
import { adviceOn, chatModels } from "@/lib/models";

/** Each set is the contract's: a name that is missing or unknown does not compile. */
const MODES: Record<Mode, string> = {
  general: "General",
  compare: "Compare",
  methodology: "Methodology",
  datasets: "Data sets",
  reproduce: "Reproduce",
  summary: "Summary",
};

const STRATEGIES: Record<Strategy | "default", string> = {
  default: "Default search",
  baseline: "Baseline",
  hyde: "HyDE",
  multi_query: "Multi-query",
  flare: "FLARE",
};

const EVIDENCE: Record<EvidenceKind | "default", string> = {
  default: "Default evidence",
  auto: "Fitted to the model",
  short: "Sentences",
  full: "Whole passages",
};

function optionsOf<Name extends string>(labels: Record<Name, string>): { value: Name; label: string }[] {
  return (Object.keys(labels) as Name[]).map((value) => ({ value, label: labels[value] }));
}

/** Mode, strategy, model and evidence of the next question. */
export function ChatControls() {
  const { controls, setControls } = useChat();
  const { data } = useQuery(models);
  const installed = chatModels(data);
  return (
    <div className="flex min-w-0 flex-wrap items-center">
      <Select label="Mode" value={controls.mode} options={optionsOf(MODES)} onValue={(mode) => setControls({ mode })} />
      <Select label="Strategy" value={controls.strategy ?? "default"} options={optionsOf(STRATEGIES)} onValue={(strategy) => setControls({ strategy: strategy === "default" ? null : strategy })} />
      {installed.length > 0 && (
        <Select
          label="Model"
          title={adviceOn(controls.model, data)}
          value={controls.model ?? ""}
          options={[{ value: "", label: "Default model" }, ...installed.map((name) => ({ value: name, label: name }))]}
          onValue={(model) => setControls({ model: model === "" ? null : model })}
          className="max-w-44"
        />
      )}
      <Select label="Evidence" value={controls.evidence ?? "default"} options={optionsOf(EVIDENCE)} onValue={(evidence) => setControls({ evidence: evidence === "default" ? null : evidence })} />
      <label className="flex min-h-7 items-center gap-1 px-2 text-xs text-muted hover:text-ink" title="Where no passage passes the cutoff, let the model read the nearest ones">
        <input type="checkbox" checked={controls.nearest} onChange={(event) => setControls({ nearest: event.target.checked })} className="accent-accent" />
        Also nearest
      </label>
    </div>
  );
}
