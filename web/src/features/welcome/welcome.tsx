import { useQuery } from "@tanstack/react-query";
import { conversations, health, libraries, suggestions } from "@/api/queries";
import { Button } from "@/components/ui/button";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { hrefOf } from "@/hooks/use-route";
import { useSamples } from "@/hooks/use-samples";
import { useWorkspace } from "@/hooks/use-workspace";
import { t } from "@/lib/language";
import { modelsInUse } from "@/lib/models";
import { isUntouched, samplesIn } from "@/lib/first-steps";
import { modelName, sentence } from "@/lib/format";

function useUntouched(): { untouched: boolean; samples: number } | null {
  const all = useQuery(libraries);
  const talks = useQuery(conversations);
  if (all.data === undefined || talks.isPending) return null;
  return { untouched: isUntouched(all.data.libraries, talks.data?.conversations.length ?? 0), samples: samplesIn(all.data.libraries) };
}

/** What stands above the question box where nothing was asked yet. */
export function Greeting() {
  const { library } = useWorkspace();
  const all = useQuery(libraries);
  const state = useUntouched();
  if (all.isError) return <Failure error={all.error} onRetry={() => void all.refetch()} />;
  if (state === null) return <Skeleton lines={2} />;
  const counted = all.data?.libraries.filter((l) => library === "all" || l.library === library).reduce((sum, l) => sum + l.documents, 0) ?? 0;
  return (
    <div className="text-center">
      <p className="font-serif text-[1.75rem] leading-9 text-balance text-ink">{state.untouched ? t("Ask your own documents.") : t("What would you like to know?")}</p>
      <p className="mx-auto mt-2 max-w-prose text-base text-balance text-muted">
        {state.untouched
          ? t("Everything stays on this machine, and each answer shows the exact words that it rests on.")
          : counted === 0
            ? t("This library is empty. Choose another one, or add documents to it.")
            : t("Answers come from {n} documents, and every citation opens at the exact words.", { n: counted })}
      </p>
    </div>
  );
}

/** What stands under the box: on an empty server the way to documents, and who answers. */
export function FirstSteps({ onPickFiles }: { onPickFiles: () => void }) {
  const state = useUntouched();
  const change = useSamples();
  const { ask } = useChat();
  const first = useQuery(suggestions("all")).data?.suggestions[0]?.question;
  if (state === null) return null;
  if (!state.untouched) return <WhoAnswers />;
  return (
    <section aria-label={t("First steps")} className="mt-4 flex flex-col items-center gap-2 text-center">
      <div className="flex flex-wrap items-center justify-center gap-2">
        <Button look="primary" icon="plus" onClick={onPickFiles}>
          {t("Add documents")}
        </Button>
        {state.samples === 0 ? (
          <Button look="quiet" disabled={change.isPending} onClick={() => change.mutate("POST")}>
            {change.isPending ? t("Loading") : t("or load the samples")}
          </Button>
        ) : (
          first !== undefined && (
            <Button look="quiet" onClick={() => ask(first)}>
              {t("or ask the samples")}
            </Button>
          )
        )}
      </div>
      <p className="text-sm text-muted">
        {state.samples === 0 ? t("Office files, PDF, pages, mail, tables or text; drop them anywhere.") : t("{n} short samples in both libraries, labelled, to try it out. Drop your own files anywhere.", { n: state.samples })}
      </p>
      {change.isError && <Failure error={change.error} onRetry={() => change.mutate("POST")} what={t("That did not work.")} />}
      <WhoAnswers />
    </section>
  );
}

/** Who answers, in a word, and the place to change it. */
function WhoAnswers() {
  const state = useQuery(health);
  const { generator } = modelsInUse(state.data);
  if (generator === null) return null;
  const quotes = generator.startsWith("extractive");
  // A host that answers and lacks a model is worth a word; a host that is not there was perhaps never wanted.
  const reason = quotes && state.data?.hosts.some((host) => host.reachable) === true ? sentence(state.data.generator_why) : "";
  return (
    <p className="mt-2 text-center text-sm text-balance text-muted">
      {quotes ? t("Answers are quotes, word for word; no language model is connected.") : t("{model} writes the answers.", { model: modelName(generator) })} {reason}{" "}
      <a href={hrefOf("settings")} className="text-accent underline underline-offset-2">
        {quotes ? t("Connect a model") : t("Change")}
      </a>
    </p>
  );
}
