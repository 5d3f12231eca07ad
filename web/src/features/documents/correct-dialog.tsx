import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import type { DocumentCorrection, DocumentRecord } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { Failure } from "@/components/ui/states";

/** Mend what was read wrong of a document: its title, authors and year. */
export function CorrectDialog({ document, onClose }: { document: DocumentRecord; onClose: () => void }) {
  const [title, setTitle] = useState(document.title);
  const [authors, setAuthors] = useState(document.authors.join("; "));
  const [year, setYear] = useState(document.year === null ? "" : String(document.year));
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (correction: DocumentCorrection) => call("PATCH", `api/v1/papers/${encodeURIComponent(document.doc_id)}`, correction, { library: document.library }),
    onSuccess: onClose,
    onSettled: () => {
      for (const key of ["documents", "document"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const names = authors.split(";").map((name) => name.trim()).filter(Boolean);
  const dated = /^\d{1,4}$/.test(year.trim());
  return (
    <Dialog title="Correct this document" open onClose={onClose}>
      <form
        className="flex flex-col gap-3 text-xs text-muted"
        onSubmit={(event) => {
          event.preventDefault();
          if (title.trim() !== "") change.mutate({ title: title.trim(), authors: names, ...(dated ? { year: Number(year) } : {}) });
        }}
      >
        <div>
          Title
          <Input label="Title" value={title} autoFocus maxLength={300} onChange={(event) => setTitle(event.target.value)} />
        </div>
        <div>
          Authors, one after the other with a semicolon
          <Input label="Authors" value={authors} onChange={(event) => setAuthors(event.target.value)} />
        </div>
        <div>
          Year
          <Input label="Year" inputMode="numeric" value={year} onChange={(event) => setYear(event.target.value)} aria-invalid={year !== "" && !dated} />
        </div>
        <Button type="submit" look="primary" disabled={title.trim() === "" || change.isPending} className="self-end">
          Save
        </Button>
        {change.isError && <Failure error={change.error} what="Nothing was changed." />}
      </form>
    </Dialog>
  );
}
