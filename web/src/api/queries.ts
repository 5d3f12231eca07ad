import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { get } from "@/api/http";
import type { Filter } from "@/lib/filters";
import type {
  AnswerList,
  ChosenHost,
  CollectionList,
  Conversation,
  ConversationList,
  CorrectionList,
  Diagnostics,
  DocumentPage,
  DocumentRecord,
  DocumentText,
  DuplicateList,
  EvaluationList,
  EvaluationReport,
  Health,
  JobList,
  JobRecord,
  KeyList,
  Ledger,
  LibrariesResponse,
  Library,
  ModelsResponse,
  Mode,
  Neighbours,
  PageBoxes,
  Prompts,
  Scope,
  SearchResponse,
  SharedAnswer,
  ShareList,
  StoredAnswer,
  SuggestionList,
  SyncedFolders,
  TagList,
} from "@/api/types";

/** Documents per page of a list: two requests fill any screen, fifty fetch ten thousand. */
export const PAGE_SIZE = 200;

export const live = queryOptions({
  queryKey: ["live"],
  queryFn: async ({ signal }) => get("health/live", {}, signal),
  refetchInterval: (query) => (query.state.status === "error" ? 1500 : 10_000),
  refetchIntervalInBackground: false,
  retry: false,
  gcTime: Infinity,
});

export const health = queryOptions({
  queryKey: ["health"],
  queryFn: ({ signal }) => get<Health>("health", {}, signal),
  staleTime: 10_000,
  // A server that is starting does not know yet who answers.
  refetchInterval: (query) => (query.state.data?.generator == null ? 1500 : 30_000),
});

export const libraries = queryOptions({
  queryKey: ["libraries"],
  queryFn: ({ signal }) => get<LibrariesResponse>("api/v1/libraries", {}, signal),
  staleTime: 2000,
});

/** The documents of libraries, one library after the other. */
export function documents(libraries: readonly Library[], q: string, tag: readonly string[] = []) {
  return infiniteQueryOptions({
    queryKey: ["documents", libraries, q, tag],
    queryFn: ({ pageParam: { at, cursor }, signal }) =>
      get<DocumentPage>("api/v1/papers", { library: libraries[at], q, tag, cursor, limit: PAGE_SIZE }, signal),
    initialPageParam: { at: 0, cursor: "" },
    getNextPageParam: ({ next_cursor: cursor }, _, { at }) => (cursor !== null ? { at, cursor } : at + 1 < libraries.length ? { at: at + 1, cursor: "" } : null),
    staleTime: 5000,
    // While vectors are on their way the counts move; long lists are left alone.
    refetchInterval: (query) => {
      const pages = query.state.data?.pages ?? [];
      return pages.length <= 2 && pages.some((page) => page.documents.some((d) => d.embedded < d.chunks)) ? 3000 : false;
    },
  });
}

/** Tags with the number of documents that have them. */
/** Groups of documents of a library that are alike; not asked again while a page is open but after a change. */
export function duplicates(library: Library) {
  return queryOptions({
    queryKey: ["documents", "duplicates", library],
    queryFn: ({ signal }) => get<DuplicateList>("api/v1/duplicates", { library }, signal),
    retry: false,
  });
}

export const tags = queryOptions({
  queryKey: ["tags"],
  queryFn: ({ signal }) => get<TagList>("api/v1/tags", {}, signal),
  staleTime: 5000,
});

/** Saved filters. */
export const collections = queryOptions({
  queryKey: ["collections"],
  queryFn: ({ signal }) => get<CollectionList>("api/v1/collections", {}, signal),
  staleTime: 5000,
});

/** Folders that libraries follow, as their last sync left them. */
export const folders = queryOptions({
  queryKey: ["folders"],
  queryFn: ({ signal }) => get<SyncedFolders>("api/v1/sync/folders", {}, signal),
  refetchInterval: 30_000,
});

export function documentRecord(library: Library, docId: string) {
  return queryOptions({
    queryKey: ["document", library, docId],
    queryFn: ({ signal }) => get<DocumentRecord>(`api/v1/papers/${encodeURIComponent(docId)}`, { library }, signal),
    staleTime: 60_000,
  });
}

/** The notes around a note of a vault. */
export function documentLinks(library: Library, docId: string) {
  return queryOptions({
    queryKey: ["document", library, docId, "links"],
    queryFn: ({ signal }) => get<Neighbours>(`api/v1/documents/${encodeURIComponent(docId)}/links`, { library }, signal),
    staleTime: 60_000,
  });
}

export function documentText(library: Library, docId: string, revision: number | null, start: number, end: number) {
  return queryOptions({
    queryKey: ["text", library, docId, revision, start, end],
    queryFn: ({ signal }) =>
      get<DocumentText>(`api/v1/documents/${encodeURIComponent(docId)}/text`, { library, start, end, revision }, signal),
    staleTime: Infinity,
  });
}

/** A page of a revision's text, or some characters where it has no pages. */
export function documentPart(library: Library, docId: string, revision: number, part: { page: number } | { start: number; end: number }) {
  return queryOptions({
    queryKey: ["text", library, docId, revision, part],
    queryFn: ({ signal }) => get<DocumentText>(`api/v1/documents/${encodeURIComponent(docId)}/text`, { library, revision, ...part }, signal),
    staleTime: Infinity,
  });
}

export function corrections(library: Library, docId: string, revision: number) {
  return queryOptions({
    queryKey: ["corrections", library, docId, revision],
    queryFn: ({ signal }) => get<CorrectionList>(`api/v1/documents/${encodeURIComponent(docId)}/corrections`, { library, revision }, signal),
    staleTime: Infinity,
  });
}

export function pageBoxes(library: Library, docId: string, revision: number | null, start: number, end: number) {
  return queryOptions({
    queryKey: ["boxes", library, docId, revision, start, end],
    queryFn: async ({ signal }) =>
      get<PageBoxes[]>(`api/v1/documents/${encodeURIComponent(docId)}/boxes`, { library, start, end, revision }, signal),
    staleTime: Infinity,
  });
}

export function search(q: string, library: Scope, limit: number, filter: Filter) {
  return queryOptions({
    queryKey: ["search", library, q, limit, filter],
    queryFn: ({ signal }) => get<SearchResponse>("api/v1/search", { q, library, limit, ...filter }, signal),
    enabled: q.trim() !== "",
    staleTime: 30_000,
  });
}

export function storedAnswer(answerId: string) {
  return queryOptions({
    queryKey: ["answer", answerId],
    queryFn: ({ signal }) => get<StoredAnswer>(`api/v1/answers/${encodeURIComponent(answerId)}`, {}, signal),
    staleTime: Infinity,
  });
}

/** What was answered, by any door, newest first. */
export const answers = queryOptions({
  queryKey: ["answers"],
  queryFn: ({ signal }) => get<AnswerList>("api/v1/answers", {}, signal),
});

export const conversations = queryOptions({
  queryKey: ["conversations"],
  queryFn: ({ signal }) => get<ConversationList>("api/v1/conversations", {}, signal),
  staleTime: 5000,
});

export function conversation(id: string) {
  return queryOptions({
    queryKey: ["conversation", id],
    queryFn: ({ signal }) => get<Conversation>(`api/v1/conversations/${encodeURIComponent(id)}`, {}, signal),
  });
}

export function suggestions(library: Scope) {
  return queryOptions({
    queryKey: ["suggestions", library],
    queryFn: ({ signal }) => get<SuggestionList>("api/v1/suggestions", { n: 4, library }, signal),
    staleTime: 60_000,
  });
}

/** Questions that one document answers. */
export function documentSuggestions(library: Scope, docId: string, n: number) {
  return queryOptions({
    queryKey: ["suggestions", library, docId, n],
    queryFn: ({ signal }) => get<SuggestionList>("api/v1/suggestions", { n, library, doc_id: docId }, signal),
    staleTime: 60_000,
  });
}

export const jobs = queryOptions({
  queryKey: ["jobs"],
  queryFn: ({ signal }) => get<JobList>("api/v1/jobs", {}, signal),
  refetchInterval: 2000,
});

export function job(id: string) {
  return queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get<JobRecord>(`api/v1/jobs/${encodeURIComponent(id)}`, {}, signal),
    refetchInterval: (query) => (finished(query.state.data) ? false : 800),
  });
}

export function finished(record: JobRecord | undefined): boolean {
  return record !== undefined && (record.state === "done" || record.state === "failed" || record.state === "cancelled");
}

export const models = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => get<ModelsResponse>("api/v1/models", {}, signal),
  staleTime: 10_000,
});

/** The OpenAI-compatible host that was chosen; without its key. */
export const host = queryOptions({
  queryKey: ["host"],
  queryFn: ({ signal }) => get<ChosenHost>("api/v1/models/host", {}, signal),
});

/** What is sent to a model for a kind of answer. */
export function prompts(mode: Mode) {
  return queryOptions({
    queryKey: ["prompts", mode],
    queryFn: ({ signal }) => get<Prompts>("api/v1/models/prompts", { query_mode: mode }, signal),
    staleTime: Infinity,
  });
}

export const diagnostics = queryOptions({
  queryKey: ["diagnostics"],
  queryFn: ({ signal }) => get<Diagnostics>("api/v1/diagnostics", {}, signal),
  staleTime: 5000,
});

/** API keys; what opens with one is shown when it is made, and never again. */
export const keys = queryOptions({
  queryKey: ["keys"],
  queryFn: ({ signal }) => get<KeyList>("api/v1/keys", {}, signal),
});

/** Links to shared answers, or to one of them. */
export function shares(answerId: string | null) {
  return queryOptions({
    queryKey: ["shares", answerId],
    queryFn: ({ signal }) => get<ShareList>("api/v1/shares", { answer_id: answerId }, signal),
  });
}

/** What a link shows, without a key. */
export function sharedAnswer(token: string) {
  return queryOptions({
    queryKey: ["shared", token],
    queryFn: ({ signal }) => get<SharedAnswer>(`shared/${encodeURIComponent(token)}`, {}, signal),
    staleTime: Infinity,
  });
}

export const ledger = queryOptions({
  queryKey: ["ledger"],
  queryFn: ({ signal }) => get<Ledger>("api/v1/bulk/ledger", {}, signal),
});

export const evaluations = queryOptions({
  queryKey: ["evaluations"],
  queryFn: ({ signal }) => get<EvaluationList>("api/v1/evaluations", {}, signal),
});

export function evaluation(id: string) {
  return queryOptions({
    queryKey: ["evaluation", id],
    queryFn: ({ signal }) => get<EvaluationReport>(`api/v1/evaluations/${encodeURIComponent(id)}`, {}, signal),
    staleTime: Infinity,
  });
}
