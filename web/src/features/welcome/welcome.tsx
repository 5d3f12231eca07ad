import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { conversations, diagnostics, health, libraries } from "@/api/queries";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Failure, Skeleton } from "@/components/ui/states";
import { goTo } from "@/hooks/use-route";
import { useSamples } from "@/hooks/use-samples";
import { useWorkspace } from "@/hooks/use-workspace";
import { modelsInUse } from "@/lib/models";
import { isUntouched, samplesIn } from "@/lib/first-steps";
import { modelName, plural, sentence } from "@/lib/format";

/** What stands where answers will be: the first steps on an empty server, a quiet line on one with documents. */
export function Welcome({ onPickFiles }: { onPickFiles: () => void }) {
  const all = useQuery(libraries);
  const talks = useQuery(conversations);
  if (all.isPending || talks.isPending) {
    return (
      <div className="py-10">
        <Skeleton lines={3} label="Loading libraries" />
      </div>
    );
  }
  if (all.isError) {
    return (
      <div className="py-10">
        <Failure error={all.error} onRetry={() => void all.refetch()} what="The libraries could not be read." />
      </div>
    );
  }
  const untouched = isUntouched(all.data.libraries, talks.data?.conversations.length ?? 0);
  return untouched ? <FirstRun onPickFiles={onPickFiles} samples={samplesIn(all.data.libraries)} /> : <Ready />;
}

function Ready() {
  const { library } = useWorkspace();
  const all = useQuery(libraries);
  const counted = all.data?.libraries.filter((l) => library === "all" || l.library === library).reduce((sum, l) => sum + l.documents, 0) ?? 0;
  return (
    <div className="flex min-h-64 flex-col justify-center py-14">
      <p className="font-serif text-[1.75rem] leading-9 text-balance text-ink">What would you like to know?</p>
      <p className="mt-2 max-w-prose text-base text-muted">
        {counted === 0
          ? "This library is empty. Choose another one on the left, or add documents to it."
          : `Answers come from ${plural(counted, "document")}, and every citation opens at the exact words.`}
      </p>
      <ModelNote />
    </div>
  );
}

function ModelNote() {
  const state = useQuery(health);
  const { generator } = modelsInUse(state.data);
  if (generator === null || !generator.startsWith("extractive")) return null;
  // A host that answers and lacks a model is worth a word; a host that is not there was perhaps never wanted.
  const reason = state.data?.hosts.some((host) => host.reachable) === true ? state.data.generator_why : "";
  return (
    <p className="mt-3 max-w-prose text-sm text-muted">
      No language model is connected, so answers are the best supporting sentences, quoted. {reason === "" ? "" : `${sentence(reason)} `}
      <button type="button" className="text-accent underline underline-offset-2" onClick={() => goTo("status")}>
        Models
      </button>
    </p>
  );
}

function FirstRun({ onPickFiles, samples }: { onPickFiles: () => void; samples: number }) {
  const state = useQuery(health);
  const about = useQuery(diagnostics);
  const change = useSamples();
  const loaded = samples > 0;
  const { generator } = modelsInUse(state.data ?? about.data);
  const extractive = generator === null || generator.startsWith("extractive");
  return (
    <section aria-label="First steps" className="py-10">
      <p className="font-serif text-[1.75rem] leading-9 text-balance">Ask your own documents.</p>
      <p className="mt-2 max-w-prose text-base text-muted">
        Everything stays on this machine. Add something to read, then ask; each answer shows the exact words that it rests on.
      </p>
      <ol className="mt-6 flex flex-col border-t border-line">
        <Step
          title="Add your own documents"
          text="PDF, office files, tables, pages, mail, data or text. Drop them anywhere on this page."
          action={
            <Button look="primary" icon="plus" onClick={onPickFiles}>
              Choose files
            </Button>
          }
        />
        <Step
          title={loaded ? "Or ask the samples" : "Or try the samples"}
          text={
            loaded
              ? `${plural(samples, "short document")} in both libraries, labelled, so that there is something to ask below.`
              : "A handful of short documents in both libraries, labelled, removable in one click."
          }
          action={
            <Button icon={loaded ? "trash" : "file"} disabled={change.isPending} onClick={() => change.mutate(loaded ? "DELETE" : "POST")}>
              {change.isPending ? (loaded ? "Removing" : "Indexing") : loaded ? "Remove the samples" : "Load samples"}
            </Button>
          }
        />
        <Step
          title={extractive ? "Connect a language model" : `${modelName(generator)} answers`}
          text={
            extractive
              ? "Without one, answers are the best supporting sentences, quoted and cited. With Ollama, answers are written."
              : "A language model is connected; answers are written from your documents only."
          }
          action={
            <Button icon="chat" onClick={() => goTo("status")}>
              Models
            </Button>
          }
        />
      </ol>
      {change.isError && (
        <div className="mt-3">
          <Failure error={change.error} onRetry={() => change.mutate(loaded ? "DELETE" : "POST")} what="The samples could not be changed." />
        </div>
      )}
      <Banner tone="good" className="mt-5">
        Works right now: search, quoted answers, citations to the exact words, and the whole API.
        
      </Banner>
    </section>
  );
}

function Step({ title, text, action }: { title: string; text: string; action: ReactNode }) {
  return (
    <li className="flex flex-wrap items-center justify-between gap-3 border-b border-line py-3.5">
      <div className="min-w-0 flex-1 basis-64">
        <h2 className="text-base font-semibold">{title}</h2>
        <p className="text-sm text-muted">{text}</p>
      </div>
      {action}
    </li>
  );
}
