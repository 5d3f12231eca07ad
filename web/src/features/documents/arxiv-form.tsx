import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { call } from "@/api/http";
import type { IngestResponse } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/field";
import { useWorkspace } from "@/hooks/use-workspace";

const NEW_ID = /^\d{4}\.\d{4,5}(v\d+)?$/;
const OLD_ID = /^[a-z-]+(\.[A-Z]{2})?\/\d{7}(v\d+)?$/;

/** Fetch a paper by its arXiv id; an address of arXiv is reduced to the id. */
export function ArxivForm() {
  const [text, setText] = useState("");
  const client = useQueryClient();
  const { library, choose } = useWorkspace();
  const id = text.trim().replace(/^(?:https?:\/\/)?(?:www\.|export\.)?arxiv\.org\/(?:abs|pdf)\//, "").replace(/\.pdf$/, "").replace(/^arxiv:/i, "");
  const valid = NEW_ID.test(id) || OLD_ID.test(id);
  const fetching = useMutation({
    mutationFn: (arxivId: string) => call<IngestResponse>("POST", "api/v1/fetch-arxiv", { arxiv_id: arxivId }, { wait: "text" }),
    onSuccess: () => {
      setText("");
      if (library === "public") choose("papers");
    },
    onSettled: () => {
      for (const key of ["documents", "libraries", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (valid) fetching.mutate(id);
  };
  const failed = fetching.data?.documents.find((d) => d.status === "failed");
  return (
    <form onSubmit={submit} className="flex flex-col gap-1.5">
      <div className="flex gap-1.5">
        <Input label="arXiv id" placeholder="arXiv, e.g. 2210.03629" value={text} onChange={(event) => setText(event.target.value)} aria-invalid={text !== "" && !valid} spellCheck={false} />
        <Button type="submit" disabled={!valid || fetching.isPending}>
          {fetching.isPending ? "Fetching" : "Fetch"}
        </Button>
      </div>
      {text !== "" && !valid && <p className="text-2xs text-muted">An id looks like 2210.03629 or hep-th/9901001.</p>}
      {fetching.isError && <Banner tone="bad">{fetching.error.message}</Banner>}
      {failed !== undefined && <Banner tone="bad">{failed.reason ?? "arXiv's paper could not be read."}</Banner>}
      {fetching.isSuccess && failed === undefined && <Banner tone="good">{fetching.data.documents[0]?.filename ?? "The paper"} is in Papers.</Banner>}
    </form>
  );
}
