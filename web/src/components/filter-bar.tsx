import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { call } from "@/api/http";
import { collections, tags } from "@/api/queries";
import { Button, IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { Failure } from "@/components/ui/states";
import { useWorkspace } from "@/hooks/use-workspace";
import { filterFields, narrows, NO_FILTER } from "@/lib/filters";
import { count } from "@/lib/format";

/** Tags and saved filters as chips: what list, search and the next question are narrowed to. Nothing where there is no tag. */
export function FilterBar() {
  const known = useQuery(tags).data?.tags ?? [];
  const saved = useQuery(collections).data?.collections ?? [];
  const { filter, narrowTo } = useWorkspace();
  const [managing, setManaging] = useState(false);
  if (known.length === 0 && saved.length === 0 && !narrows(filter)) return null;
  const toggleTag = (tag: string): void => narrowTo({ ...filter, tags: filter.tags.includes(tag) ? filter.tags.filter((one) => one !== tag) : [...filter.tags, tag] });
  return (
    <div role="group" aria-label="Tags and filters" className="flex max-h-24 flex-wrap items-center gap-1 overflow-y-auto">
      {saved.map(({ name }) => (
        <Chip key={name} pressed={filter.collection === name} onClick={() => narrowTo({ ...filter, collection: filter.collection === name ? null : name })}>
          <strong className="font-semibold">{name}</strong>
        </Chip>
      ))}
      {known.map(({ tag, documents }) => (
        <Chip key={tag} pressed={filter.tags.includes(tag)} onClick={() => toggleTag(tag)}>
          #{tag} {count(documents)}
        </Chip>
      ))}
      {filter.metadata.map((condition) => (
        <Chip key={condition} pressed onClick={() => narrowTo({ ...filter, metadata: filter.metadata.filter((one) => one !== condition) })}>
          {condition}
        </Chip>
      ))}
      {narrows(filter) && <IconButton icon="close" label="No filter" onClick={() => narrowTo(NO_FILTER)} className="size-6" />}
      <IconButton icon="sliders" label="Edit tags and filters" onClick={() => setManaging(true)} className="size-6" />
      <Dialog title="Tags and filters" open={managing} onClose={() => setManaging(false)}>
        <ManageFilters />
      </Dialog>
    </div>
  );
}

function Chip({ pressed, onClick, children }: { pressed: boolean; onClick: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      onClick={onClick}
      className={cx("max-w-full truncate rounded-full border px-2 text-2xs pointer-coarse:py-1.5", pressed ? "border-accent bg-accent-soft text-accent" : "border-line text-muted hover:text-ink")}
    >
      {children}
    </button>
  );
}

/** Narrow by own metadata, keep a filter under a name, rename and delete tags. */
function ManageFilters() {
  const known = useQuery(tags).data?.tags ?? [];
  const saved = useQuery(collections).data?.collections ?? [];
  const { filter, narrowTo } = useWorkspace();
  const [condition, setCondition] = useState("");
  const [name, setName] = useState("");
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSettled: () => {
      for (const key of ["tags", "collections", "documents", "document", "search"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const save = async (): Promise<void> => {
    await call("PUT", collectionPath(name.trim()), filterFields(filter));
    narrowTo({ ...NO_FILTER, collection: name.trim() });
    setName("");
  };
  const forget = async (one: string): Promise<void> => {
    await call("DELETE", collectionPath(one));
    if (filter.collection === one) narrowTo({ ...filter, collection: null });
  };
  /** Another name for a tag, or none: then it is taken from every document. */
  const rename = async (tag: string, to: string | null): Promise<void> => {
    await (to === null ? call("DELETE", tagPath(tag)) : call("PATCH", tagPath(tag), { name: to }));
    narrowTo({ ...filter, tags: filter.tags.flatMap((one) => (one !== tag ? [one] : to === null ? [] : [to])) });
  };
  return (
    <div className="flex flex-col gap-4 text-sm">
      <form
        className="flex gap-1.5"
        onSubmit={(event) => {
          event.preventDefault();
          // Options stand inside the form of the question, which must not be sent.
          event.stopPropagation();
          narrowTo({ ...filter, metadata: [...filter.metadata, condition.trim()] });
          setCondition("");
        }}
      >
        <Input label="Condition on metadata" placeholder="key=value or key=from..to" value={condition} onChange={(event) => setCondition(event.target.value)} />
        <Button type="submit" disabled={!/^[^=]+=./.test(condition.trim())}>
          Narrow
        </Button>
      </form>
      {narrows(filter) && (
        <form
          className="flex gap-1.5"
          onSubmit={(event) => {
            event.preventDefault();
          // Options stand inside the form of the question, which must not be sent.
          event.stopPropagation();
            change.mutate(save);
          }}
        >
          <Input label="Name of the collection" placeholder="Keep this filter as a collection" value={name} maxLength={64} onChange={(event) => setName(event.target.value)} />
          <Button type="submit" disabled={name.trim() === "" || change.isPending}>
            Save
          </Button>
        </form>
      )}
      {change.isError && <Failure error={change.error} />}
      {saved.length > 0 && (
        <ul aria-label="Collections">
          {saved.map((one) => (
            <li key={one.name} className="flex items-center justify-between gap-2">
              <span className="truncate">{one.name}</span>
              <IconButton icon="trash" label={`Delete the collection ${one.name}`} onClick={() => change.mutate(() => forget(one.name))} />
            </li>
          ))}
        </ul>
      )}
      <ul aria-label="Tags">
        {known.map(({ tag, documents }) => (
          <TagRow key={tag} tag={tag} documents={documents} onRename={(to) => change.mutate(() => rename(tag, to))} />
        ))}
      </ul>
    </div>
  );
}

function TagRow({ tag, documents, onRename }: { tag: string; documents: number; onRename: (to: string | null) => void }) {
  const [name, setName] = useState<string | null>(null);
  return (
    <li className="flex items-center gap-1">
      {name === null ? (
        <span className="min-w-0 flex-1 truncate">
          #{tag} <span className="text-2xs text-muted tabular-nums">{count(documents)}</span>
        </span>
      ) : (
        <form
          className="min-w-0 flex-1"
          onSubmit={(event) => {
            event.preventDefault();
          // Options stand inside the form of the question, which must not be sent.
          event.stopPropagation();
            if (name.trim() !== "" && name.trim() !== tag) onRename(name.trim());
            setName(null);
          }}
        >
          <Input label={`New name of ${tag}`} value={name} autoFocus maxLength={64} onChange={(event) => setName(event.target.value)} onBlur={() => setName(null)} />
        </form>
      )}
      <IconButton icon="edit" label={`Rename the tag ${tag}`} onClick={() => setName(tag)} />
      <IconButton icon="trash" label={`Delete the tag ${tag}`} onClick={() => onRename(null)} />
    </li>
  );
}

const tagPath = (tag: string): string => `api/v1/tags/${encodeURIComponent(tag)}`;
const collectionPath = (name: string): string => `api/v1/collections/${encodeURIComponent(name)}`;
