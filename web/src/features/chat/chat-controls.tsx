import { useQuery } from "@tanstack/react-query";
import { models } from "@/api/queries";
import type { EvidenceKind, Mode, Strategy } from "@/api/types";
import { Select } from "@/components/ui/field";
import { useChat } from "@/hooks/use-chat";
import { adviceOn, chatModels } from "@/lib/models";

const MODES: readonly { value: Mode; label: string }[] = [
  { value: "general", label: "General" },
  { value: "compare", label: "Compare" },
  { value: "methodology", label: "Methodology" },
  { value: "datasets", label: "Data sets" },
  { value: "reproduce", label: "Reproduce" },
];

const STRATEGIES: readonly { value: Strategy | "default"; label: string }[] = [
  { value: "default", label: "Default search" },
  { value: "baseline", label: "Baseline" },
  { value: "hyde", label: "HyDE" },
  { value: "multi_query", label: "Multi-query" },
  { value: "flare", label: "FLARE" },
];

const EVIDENCE: readonly { value: EvidenceKind | "default"; label: string }[] = [
  { value: "default", label: "Default evidence" },
  { value: "auto", label: "Fitted to the model" },
  { value: "short", label: "Sentences" },
  { value: "full", label: "Whole passages" },
];

/** Mode, strategy, model and evidence of the next question. */
export function ChatControls() {
  const { controls, setControls } = useChat();
  const { data } = useQuery(models);
  const installed = chatModels(data);
  return (
    <div className="flex min-w-0 flex-wrap items-center">
      <Select label="Mode" value={controls.mode} options={MODES} onValue={(mode) => setControls({ mode })} />
      <Select label="Strategy" value={controls.strategy ?? "default"} options={STRATEGIES} onValue={(strategy) => setControls({ strategy: strategy === "default" ? null : strategy })} />
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
      <Select label="Evidence" value={controls.evidence ?? "default"} options={EVIDENCE} onValue={(evidence) => setControls({ evidence: evidence === "default" ? null : evidence })} />
      <label className="flex min-h-7 items-center gap-1 px-2 text-xs text-muted hover:text-ink" title="Where no passage passes the cutoff, let the model read the nearest ones">
        <input type="checkbox" checked={controls.nearest} onChange={(event) => setControls({ nearest: event.target.checked })} className="accent-accent" />
        Also nearest
      </label>
    </div>
  );
}
