import { Button } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { useSamples } from "@/hooks/use-samples";
import { plural } from "@/lib/format";

/** Says how many samples there are, and removes them and nothing else in one click. */
export function SamplesLine({ samples }: { samples: number }) {
  const change = useSamples();
  if (samples === 0) return null;
  return (
    <div className="border-b border-line px-3 py-1.5">
      <div className="flex items-center justify-between gap-2 text-xs text-muted">
        <span>{plural(samples, "sample")} in both libraries</span>
        <Button look="quiet" disabled={change.isPending} onClick={() => change.mutate("DELETE")} className="-my-0.5 text-accent">
          Remove samples
        </Button>
      </div>
      {change.isError && <Failure error={change.error} what="The samples could not be removed." />}
    </div>
  );
}
