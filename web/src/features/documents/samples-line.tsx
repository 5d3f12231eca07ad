import { Button } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { useSamples } from "@/hooks/use-samples";
import { t } from "@/lib/language";

/** Says how many samples there are, and removes them and nothing else in one click, and brings them back. */
export function SamplesLine({ samples }: { samples: number }) {
  const change = useSamples();
  const removed = change.isSuccess && change.variables === "DELETE";
  if (samples === 0 && !removed) return null;
  return (
    <div className="border-b border-line px-3 py-1.5">
      <div className="flex items-center justify-between gap-2 text-xs text-muted">
        <span>{removed ? t("The samples are gone.") : t("{n} samples", { n: samples })}</span>
        <Button look="quiet" disabled={change.isPending} onClick={() => change.mutate(removed ? "POST" : "DELETE")} className="-my-0.5 text-accent">
          {removed ? t("Bring them back") : t("Remove samples")}
        </Button>
      </div>
      {change.isError && <Failure error={change.error} what={t("That did not work.")} />}
    </div>
  );
}
