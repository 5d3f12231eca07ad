import type { DocumentRecord, FilterFields, SavedFilter } from "@/api/types";

/** What list, search and question are narrowed to: one of the tags is enough, every condition must hold. */
export interface Filter {
  tags: readonly string[];
  /** Conditions on own metadata: KEY=VALUE or KEY=FROM..TO. */
  metadata: readonly string[];
  /** Name of a saved filter; tags that are chosen count instead of its own. */
  collection: string | null;
}

export const NO_FILTER: Filter = { tags: [], metadata: [], collection: null };

export function narrows({ tags, metadata, collection }: Filter): boolean {
  return tags.length > 0 || metadata.length > 0 || collection !== null;
}

/** The filter in a word or two. */
export function filterWords({ tags, metadata, collection }: Filter): string {
  return [collection, ...tags.map((tag) => `#${tag}`), ...metadata].filter(Boolean).join(", ");
}

/** The filter as a request carries it. */
export function filterFields({ tags, metadata, collection }: Filter): Partial<FilterFields> {
  return { tags: [...tags], metadata: Object.fromEntries(metadata.map(conditionOf)), ...(collection === null ? {} : { collection }) };
}

/** `KEY=VALUE` as key and value; a figure is a number. */
export function conditionOf(text: string): [string, string | number] {
  const at = text.indexOf("=");
  const value = text.slice(at + 1).trim();
  return [text.slice(0, at).trim(), /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value];
}

/** The tags of which a document has to have one: those that are chosen, else those of the saved filter. */
export function wantedTags({ tags, collection }: Filter, saved: readonly SavedFilter[]): readonly string[] {
  return tags.length > 0 ? tags : (saved.find((one) => one.name === collection)?.filters.tags ?? []);
}

/** Whether a filter lets a document through, for a list that is here already. */
export function allows(document: DocumentRecord, filter: Filter, saved: readonly SavedFilter[]): boolean {
  const { metadata, collection } = filter;
  const of = saved.find((one) => one.name === collection)?.filters;
  const wanted = wantedTags(filter, saved);
  return (
    (wanted.length === 0 || wanted.some((tag) => document.tags.some((one) => folded(one) === folded(tag)))) &&
    [...(of?.metadata ?? []), ...metadata].every((condition) => holds(document.metadata, condition)) &&
    (of === undefined ||
      ((of.doc_ids.length === 0 || of.doc_ids.includes(document.doc_id)) &&
        (of.type.length === 0 || of.type.includes(document.type)) &&
        (of.year_from === null || (document.year ?? -1) >= of.year_from) &&
        (of.year_to === null || (document.year ?? Infinity) <= of.year_to) &&
        (of.author === null || document.authors.some((name) => folded(name).includes(folded(of.author ?? ""))))))
  );
}

function holds(metadata: DocumentRecord["metadata"], condition: string): boolean {
  const [key, value] = conditionOf(condition);
  const own = Object.entries(metadata).find(([name]) => folded(name) === folded(key))?.[1];
  if (own === undefined) return false;
  const range = /^(.*?)\.\.(.*)$/.exec(String(value));
  if (range === null) return folded(String(own)) === folded(String(value));
  const [, from = "", to = ""] = range;
  if (typeof own === "number") return (from === "" || own >= Number(from)) && (to === "" || own <= Number(to));
  return (from === "" || own >= from) && (to === "" || own <= to);
}

function folded(text: string): string {
  return text.trim().toLowerCase();
}
