import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { call } from "@/api/http";
import { collections, tags } from "@/api/queries";
import { IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Dialog } from "@/components/ui/dialog";
import { LineForm, RenameForm } from "@/components/ui/field";
import { Failure } from "@/components/ui/states";
import { useWorkspace } from "@/hooks/use-workspace";
import { filterFields, narrows, NO_FILTER } from "@/lib/filters";
import { count } from "@/lib/format";
import { t } from "@/lib/language";

/** Tags and saved filters as chips: what list, search and the next question are narrowed to. Nothing where there is no tag. */
export function FilterBar() {
  const known = useQuery(tags).data?.tags ?? [];
  const saved = useQuery(collections).data?.collections ?? [];
  const { filter, narrowTo } = useWorkspace();
  const [managing, setManaging] = useState(false);
  if (known.length === 0 && saved.length === 0 && !narrows(filter)) return null;
  const toggleTag = (tag: string): void => narrowTo({ ...filter, tags: filter.tags.includes(tag) ? filter.tags.filter((one) => one !== tag) : [...filter.tags, tag] });
  return (
    <div role="group" aria-label={t("Tags and filters")} className="flex max-h-24 flex-wrap items-center gap-1 overflow-y-auto">
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
      {narrows(filter) && <IconButton icon="close" label={t("No filter")} onClick={() => narrowTo(NO_FILTER)} className="size-6" />}
      <IconButton icon="sliders" label={t("Edit tags and filters")} onClick={() => setManaging(true)} className="size-6" />
      <Dialog title={t("Tags and filters")} open={managing} onClose={() => setManaging(false)}>
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
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSettled: () => {
      for (const key of ["tags", "collections", "documents", "document", "search"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const save = async (name: string): Promise<void> => {
    await call("PUT", collectionPath(name), filterFields(filter));
    narrowTo({ ...NO_FILTER, collection: name });
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
      <LineForm
        label={t("Condition on metadata")}
        placeholder={t("key=value or key=from..to")}
        button={t("Narrow")}
        accepts={(text) => /^[^=]+=./.test(text)}
        onSend={(condition) => narrowTo({ ...filter, metadata: [...filter.metadata, condition] })}
      />
      {narrows(filter) && <LineForm label={t("Name of the collection")} placeholder={t("Keep this filter as a collection")} button={t("Save")} maxLength={64} onSend={(name) => change.mutate(() => save(name))} />}
      {change.isError && <Failure error={change.error} />}
      {saved.length > 0 && (
        <ul aria-label={t("Collections")}>
          {saved.map((one) => (
            <li key={one.name} className="flex items-center justify-between gap-2">
              <span className="truncate">{one.name}</span>
              <IconButton icon="trash" label={t("Delete the collection {name}", { name: one.name })} onClick={() => change.mutate(() => forget(one.name))} />
            </li>
          ))}
        </ul>
      )}
      <ul aria-label={t("Tags")}>
        {known.map(({ tag, documents }) => (
          <TagRow key={tag} tag={tag} documents={documents} onRename={(to) => change.mutate(() => rename(tag, to))} />
        ))}
      </ul>
    </div>
  );
}

function TagRow({ tag, documents, onRename }: { tag: string; documents: number; onRename: (to: string | null) => void }) {
  const [renaming, setRenaming] = useState(false);
  return (
    <li className="flex items-center gap-1">
      {renaming ? (
        <RenameForm label={t("New name of {tag}", { tag })} value={tag} onRename={onRename} onClose={() => setRenaming(false)} />
      ) : (
        <span className="min-w-0 flex-1 truncate">
          #{tag} <span className="text-2xs text-muted tabular-nums">{count(documents)}</span>
        </span>
      )}
      <IconButton icon="edit" label={t("Rename the tag {tag}", { tag })} onClick={() => setRenaming(true)} />
      <IconButton icon="trash" label={t("Delete the tag {tag}", { tag })} onClick={() => onRename(null)} />
    </li>
  );
}

const tagPath = (tag: string): string => `api/v1/tags/${encodeURIComponent(tag)}`;
const collectionPath = (name: string): string => `api/v1/collections/${encodeURIComponent(name)}`;
