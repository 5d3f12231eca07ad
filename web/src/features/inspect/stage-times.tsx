import type { StageRecord } from "@/api/types";
import { milliseconds } from "@/lib/format";
import { t } from "@/lib/language";

/** Milliseconds of each step as bars on one scale. */
export function StageTimes({ stages }: { stages: readonly StageRecord[] }) {
  const longest = Math.max(...stages.map((stage) => stage.ms), 0.001);
  if (stages.length === 0) return <p className="text-sm text-muted">{t("No steps were recorded.")}</p>;
  return (
    <dl className="flex flex-col gap-1.5 text-xs">
      {stages.map((stage, i) => (
        <div key={`${stage.name}-${i}`} className="grid grid-cols-[8rem_1fr_4rem] items-center gap-2">
          <dt className="truncate text-muted">{stage.name.replaceAll("_", " ")}</dt>
          <dd className="col-span-2 grid grid-cols-subgrid items-center">
            <span aria-hidden="true" className="h-2 rounded-sm bg-sunken">
              <span className="block h-full min-w-px rounded-sm bg-accent" style={{ width: `${(stage.ms / longest) * 100}%` }} />
            </span>
            <span className="text-right tabular-nums">{milliseconds(stage.ms)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
