import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";
import { health, libraries, models } from "@/api/queries";
import type { Library } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { LineForm } from "@/components/ui/field";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { Tag } from "@/components/ui/tag";
import { bytes, modelName } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { installedModels, modelsInUse } from "@/lib/models";
import { noticeWords } from "@/lib/server-words";
import { ConnectOllama } from "@/components/connect-ollama";
import { HostForm } from "./host-form";
import { ModelTests } from "./model-tests";

/** Which models are installed, loaded and in use, whether they fit together, and how to get another. */
export function ModelsSection() {
  const state = useQuery(health);
  const list = useQuery({ ...models, refetchInterval: 5000 });
  const { generator, embedder } = modelsInUse(state.data);
  const installed = installedModels(list.data);
  const choice = useChoice();
  const fixed = list.data?.decided_by === "environment";
  return (
    <Section title={t("Models")}>
      <p className="mb-3 text-sm">
        {generator !== null &&
          tx("Answers: {model}.", {
            model: (
              <>
                <strong className="font-semibold">{generator.startsWith("extractive") ? t("quoted from your documents, no model") : modelName(generator)}</strong>
                {list.data !== undefined && list.data.why !== "" && ` (${list.data.why})`}
              </>
            ),
          })}{" "}
        {embedder !== null && tx("Search by meaning: {model}.", { model: <strong className="font-semibold">{modelName(embedder)}</strong> })}
      </p>
      {fixed && installed.some((model) => model.offered) && (
        <p className="mb-3 text-sm text-muted">{t("The environment decides which model answers. Take LLM_MODEL and LLM_PROVIDER out of it and start the server again to choose one here.")}</p>
      )}
      {list.data?.decided_by === "choice" && (
        <p className="mb-3 text-sm">
          <Button look="quiet" className="-ml-2" disabled={choice.isPending} onClick={() => choice.mutate(null)}>
            {t("Let the server choose")}
          </Button>
        </p>
      )}
      {choice.isError && <Failure error={choice.error} what={t("That did not work.")} />}
      {list.isPending && <Skeleton lines={2} />}
      {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {list.data !== undefined && installed.length === 0 && generator?.startsWith("extractive") !== false && (
        <Banner>
          {t("No language model is connected. Search, quotes and citations work without one. To have answers written:")}
          <ConnectOllama />
        </Banner>
      )}
      {installed.length > 0 && (
        <Table stacked caption={t("Installed models")} head={[t("Model"), t("Size"), t("State")]}>
          {installed.map((model) => (
            <tr key={model.name}>
              <td>{model.name}</td>
              <td>{model.size === null ? "–" : bytes(model.size)}</td>
              <td>
                <span className="flex min-h-7 flex-wrap items-center gap-1">
                  {model.inUse && <Tag tone="info">{t("in use")}</Tag>}
                  {model.loaded && <Tag tone="good">{t("loaded")}</Tag>}
                  {model.offered && !fixed && (
                    <Button look="quiet" disabled={choice.isPending} title={t("{model} answers from now on", { model: model.name })} onClick={() => choice.mutate(model.name)}>
                      {t("Use this")}
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {list.data?.fit === false && <Banner tone="warn">{t("The chat model and the embedding model do not fit into memory together; each call may wait for a reload.")}</Banner>}
      {list.data !== undefined && (installed.length > 0 || generator?.startsWith("extractive") === false) && <ModelTests list={list.data} />}
      <BetterEmbedders />
      <PullForm />
      <HostForm />
    </Section>
  );
}

/** Makes a model the one that answers from now on; null lets the server choose. */
function useChoice() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (model: string | null) => call("PUT", "api/v1/models/answering", { model }),
    onSettled: () => {
      for (const key of ["models", "health", "diagnostics"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}

/** A line for each library that a better embedding model is there for, with the button that takes it. */
function BetterEmbedders() {
  const all = useQuery(libraries);
  const client = useQueryClient();
  const reembed = useMutation({
    mutationFn: (library: Library) => call("POST", "api/v1/reembed", { library }),
    onSettled: () => void client.invalidateQueries({ queryKey: ["jobs"] }),
  });
  const found = all.data?.libraries.flatMap(({ library, notices }) => notices.filter(({ code }) => code === "better_embedder").map((notice) => ({ library, notice })));
  return (
    <>
      {found?.map(({ library, notice }) => (
        <Banner
          key={library}
          className="mt-2"
          action={
            <Button look="quiet" disabled={reembed.isPending || reembed.isSuccess} onClick={() => reembed.mutate(library)} className="-my-0.5 text-accent">
              {reembed.isSuccess ? t("Under way") : t("Re-embed {library}", { library })}
            </Button>
          }
        >
          {noticeWords(notice)}
        </Banner>
      ))}
      {reembed.isError && <Failure error={reembed.error} what={t("That did not work.")} />}
    </>
  );
}

function PullForm() {
  const client = useQueryClient();
  const pull = useMutation({
    mutationFn: (model: string) => call("POST", "api/v1/models/pull", { model }),
    onSettled: () => {
      for (const key of ["models", "jobs"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  return (
    <div className="mt-3 flex max-w-md flex-col gap-2">
      <LineForm label={t("Model to pull")} placeholder={t("Model to pull, such as llama3.2")} button={t("Pull")} disabled={pull.isPending} onSend={(name) => pull.mutate(name)} />
      {pull.isError && <Failure error={pull.error} what={t("It did not start.")} />}
      {pull.isSuccess && <Banner tone="good">{t("It is under way; Jobs shows how far it is.")}</Banner>}
    </div>
  );
}
