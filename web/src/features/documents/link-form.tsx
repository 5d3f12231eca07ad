import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { call } from "@/api/http";
import type { IngestResponse } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/field";
import { uploadLibrary, useWorkspace } from "@/hooks/use-workspace";
import { LIBRARY_NAMES } from "@/lib/format";
import { t } from "@/lib/language";
import { linkOf, type Link } from "@/lib/links";

/** Fetch a page or file of the web by its address, or a paper by its arXiv id. */
export function LinkForm() {
  const [text, setText] = useState("");
  const client = useQueryClient();
  const workspace = useWorkspace();
  const link = linkOf(text);
  const library = link?.kind === "arxiv" ? "papers" : uploadLibrary(workspace);
  const fetching = useMutation({
    mutationFn: (asked: Link) =>
      asked.kind === "arxiv"
        ? call<IngestResponse>("POST", "api/v1/fetch-arxiv", { arxiv_id: asked.id }, { wait: "text" })
        : call<IngestResponse>("POST", "api/v1/fetch-url", { url: asked.url, library }, { wait: "text" }),
    onSuccess: () => {
      setText("");
      if (library === "papers" && workspace.library === "public") workspace.choose("papers");
    },
    onSettled: () => {
      for (const key of ["documents", "libraries", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (link !== null) fetching.mutate(link);
  };
  const document = fetching.data?.documents[0];
  return (
    <form onSubmit={submit} className="flex flex-col gap-1.5">
      <div className="flex gap-1.5">
        <Input label={t("Web address or arXiv id")} placeholder={t("Web address or arXiv id")} value={text} onChange={(event) => setText(event.target.value)} aria-invalid={text !== "" && link === null} spellCheck={false} />
        <Button type="submit" disabled={link === null || fetching.isPending}>
          {fetching.isPending ? t("Fetching") : t("Fetch")}
        </Button>
      </div>
      {text !== "" && link === null && <p className="text-2xs text-muted">{t("Like https://example.org/page, 2210.03629 or hep-th/9901001.")}</p>}
      {fetching.isError && <Banner tone="bad">{fetching.error.message}</Banner>}
      {document?.status === "failed" && <Banner tone="bad">{document.reason ?? t("What was fetched could not be read.")}</Banner>}
      {document !== undefined && document.status !== "failed" && (
        <Banner tone="good">
          {document.status === "unchanged" ? t("{name} has not changed.", { name: document.filename }) : t("{name} is in {library}.", { name: document.filename, library: t(LIBRARY_NAMES[library]) })}
        </Banner>
      )}
    </form>
  );
}
