import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import { health, models } from "@/api/queries";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/field";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { Tag } from "@/components/ui/tag";
import { bytes, modelName } from "@/lib/format";
import { installedModels, modelsInUse } from "@/lib/models";
import { ConnectOllama } from "@/components/connect-ollama";
import { ModelTests } from "./model-tests";

/** Which models are installed, loaded and in use, whether they fit together, and how to get another. */
export function ModelsSection() {
  const state = useQuery(health);
  const list = useQuery({ ...models, refetchInterval: 5000 });
  const { generator, embedder } = modelsInUse(state.data);
  const installed = installedModels(list.data);
  return (
    <Section title="Models">
      <p className="mb-3 text-sm">
        {generator !== null && (
          <>
            Answers: <strong className="font-semibold">{generator.startsWith("extractive") ? "quoted from your documents, no model" : generator}</strong>.{" "}
          </>
        )}
        {embedder !== null && (
          <>
            Search by meaning: <strong className="font-semibold">{modelName(embedder)}</strong>.
          </>
        )}
      </p>
      {list.isPending && <Skeleton lines={2} />}
      {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {list.data !== undefined && installed.length === 0 && (
        <Banner>
          No language model is connected. Search, quotes and citations work without one. To have answers written:
          <ConnectOllama />
        </Banner>
      )}
      {installed.length > 0 && (
        <Table stacked caption="Installed models" head={["Model", "Size", "State"]}>
          {installed.map((model) => (
            <tr key={model.name}>
              <td>{model.name}</td>
              <td>{model.size === null ? "–" : bytes(model.size)}</td>
              <td className="flex gap-1">
                {model.inUse && <Tag tone="info">in use</Tag>}
                {model.loaded && <Tag tone="good">loaded</Tag>}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {list.data?.fit === false && <Banner tone="warn">The chat model and the embedding model do not fit into memory together; each call may wait for a reload.</Banner>}
      {list.data !== undefined && (generator !== null || installed.length > 0) && <ModelTests list={list.data} />}
      <PullForm />
    </Section>
  );
}

function PullForm() {
  const [name, setName] = useState("");
  const client = useQueryClient();
  const pull = useMutation({
    mutationFn: (model: string) => call("POST", "api/v1/models/pull", { model }),
    onSuccess: () => setName(""),
    onSettled: () => {
      for (const key of ["models", "jobs"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  return (
    <form
      className="mt-3 flex max-w-md flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== "") pull.mutate(name.trim());
      }}
    >
      <div className="flex gap-2">
        <Input label="Model to pull" placeholder="Model to pull, such as llama3.2" value={name} onChange={(event) => setName(event.target.value)} />
        <Button type="submit" disabled={name.trim() === "" || pull.isPending}>
          Pull
        </Button>
      </div>
      {pull.isError && <Failure error={pull.error} what="The pull did not start." />}
      {pull.isSuccess && <Banner tone="good">The pull is under way; Jobs shows how far it is.</Banner>}
    </form>
  );
}
