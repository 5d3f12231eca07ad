import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { call, get } from "@/api/http";
import { documentRecord } from "@/api/queries";
import type { DocumentCorrection, DocumentRecord } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { Failure, Skeleton } from "@/components/ui/states";
import type { ScopedDocument } from "@/hooks/use-workspace";
import { conditionOf } from "@/lib/filters";
import { t } from "@/lib/language";

const pathOf = ({ doc_id }: ScopedDocument): string => `api/v1/papers/${encodeURIComponent(doc_id)}`;

/** Mend what was read wrong of a document, and say what it is to you: title, authors, year, tags, own metadata; of many, what they share. */
export function EditDialog({ documents, onClose }: { documents: readonly ScopedDocument[]; onClose: () => void }) {
  const [only] = documents;
  return (
    <Dialog title={documents.length === 1 ? t("Edit this document") : t("Edit {n} documents", { n: documents.length })} open onClose={onClose}>
      {documents.length === 1 && only !== undefined ? <EditOne of={only} onClose={onClose} /> : <EditMany documents={documents} onClose={onClose} />}
    </Dialog>
  );
}

function EditOne({ of, onClose }: { of: ScopedDocument; onClose: () => void }) {
  const record = useQuery({ ...documentRecord(of.library, of.doc_id), staleTime: 0, gcTime: 0 });
  if (record.isPending) return <Skeleton />;
  if (record.isError) return <Failure error={record.error} onRetry={() => void record.refetch()} />;
  return <EditFields document={record.data} onClose={onClose} />;
}

function EditFields({ document, onClose }: { document: DocumentRecord; onClose: () => void }) {
  const [title, setTitle] = useState(document.title);
  const [authors, setAuthors] = useState(document.authors.join("; "));
  const [year, setYear] = useState(document.year === null ? "" : String(document.year));
  const [tags, setTags] = useState(document.tags.join(", "));
  const [metadata, setMetadata] = useState(() => Object.entries(document.metadata).map(([key, value]) => `${key}=${value}`).join("\n"));
  const edit = useEdit(onClose);
  const dated = /^\d{1,4}$/.test(year.trim());
  const save = (): void => {
    const given = metadataOf(metadata, document.metadata);
    const dropped = Object.keys(document.metadata).filter((key) => !(key in given));
    const correction: DocumentCorrection = { tags: listOf(tags, ","), metadata: { ...given, ...Object.fromEntries(dropped.map((key) => [key, null])) } };
    // What stays as it was read is not claimed by a person.
    if (title.trim() !== document.title) correction.title = title.trim();
    if (authors !== document.authors.join("; ")) correction.authors = listOf(authors, ";");
    if (dated && Number(year) !== document.year) correction.year = Number(year);
    edit.mutate(() => call("PATCH", pathOf(document), correction, { library: document.library }));
  };
  return (
    <Form disabled={title.trim() === "" || edit.isPending} error={edit.error} onSave={save}>
      <Field name={t("Title")}>
        <Input label={t("Title")} value={title} autoFocus maxLength={300} onChange={(event) => setTitle(event.target.value)} />
      </Field>
      <Field name={t("Authors, one after the other with a semicolon")}>
        <Input label={t("Authors")} value={authors} onChange={(event) => setAuthors(event.target.value)} />
      </Field>
      <Field name={t("Year")}>
        <Input label={t("Year")} inputMode="numeric" value={year} onChange={(event) => setYear(event.target.value)} aria-invalid={year !== "" && !dated} />
      </Field>
      <Field name={t("Tags, with commas between them")}>
        <Input label={t("Tags")} value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
      <MetadataField value={metadata} onValue={setMetadata} />
    </Form>
  );
}

function EditMany({ documents, onClose }: { documents: readonly ScopedDocument[]; onClose: () => void }) {
  const [added, setAdded] = useState("");
  const [removed, setRemoved] = useState("");
  const [metadata, setMetadata] = useState("");
  const edit = useEdit(onClose);
  const save = (): void => {
    const gone = new Set(listOf(removed, ",").map((tag) => tag.toLowerCase()));
    const one = async (document: ScopedDocument): Promise<unknown> => {
      const { tags, metadata: before } = await get<DocumentRecord>(pathOf(document), { library: document.library });
      const kept = [...tags, ...listOf(added, ",")].filter((tag) => !gone.has(tag.toLowerCase()));
      return call("PATCH", pathOf(document), { tags: kept, metadata: metadataOf(metadata, before) }, { library: document.library });
    };
    edit.mutate(() => Promise.all(documents.map(one)));
  };
  return (
    <Form disabled={edit.isPending || [added, removed, metadata].every((text) => text.trim() === "")} error={edit.error} onSave={save}>
      <Field name={t("Give them these tags, with commas between them")}>
        <Input label={t("Tags to add")} value={added} autoFocus onChange={(event) => setAdded(event.target.value)} />
      </Field>
      <Field name={t("Take these tags from them")}>
        <Input label={t("Tags to remove")} value={removed} onChange={(event) => setRemoved(event.target.value)} />
      </Field>
      <MetadataField value={metadata} onValue={setMetadata} />
    </Form>
  );
}

function useEdit(onClose: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSuccess: onClose,
    onSettled: () => {
      for (const key of ["documents", "document", "tags", "search"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}

function Form({ disabled, error, onSave, children }: { disabled: boolean; error: Error | null; onSave: () => void; children: ReactNode }) {
  return (
    <form
      className="flex flex-col gap-3 text-xs text-muted"
      onSubmit={(event) => {
        event.preventDefault();
        onSave();
      }}
    >
      {children}
      <Button type="submit" look="primary" disabled={disabled} className="self-end">
        {t("Save")}
      </Button>
      {error !== null && <Failure error={error} what={t("Not everything was changed.")} />}
    </form>
  );
}

function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      {name}
      {children}
    </div>
  );
}

function MetadataField({ value, onValue }: { value: string; onValue: (value: string) => void }) {
  return (
    <Field name={t("Own metadata, a line each: key=value. A date is 2026-01-31; a key without a value is taken away.")}>
      <textarea aria-label={t("Metadata")} rows={3} value={value} onChange={(event) => onValue(event.target.value)} className="block w-full rounded-md border border-line-strong bg-surface p-2 font-mono text-sm text-ink" />
    </Field>
  );
}

function listOf(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((one) => one.trim())
    .filter(Boolean);
}

/** Lines of key=value; a key keeps the kind that it has, and null takes it away. */
function metadataOf(text: string, before: DocumentRecord["metadata"]): Record<string, string | number | null> {
  return Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.includes("="))
      .map((line) => {
        const [key, value] = conditionOf(line);
        return [key, value === "" ? null : typeof before[key] === "string" ? String(value) : value];
      }),
  );
}
