/**
 * The shapes of the HTTP contract (API.md), by the names the page uses.
 */

export type Library = "public" | "papers";
export type Scope = Library | "all";
export type Mode = "general" | "compare" | "methodology" | "datasets" | "reproduce";
export type Strategy = "baseline" | "flare" | "hyde" | "multi_query";
export type Fusion = "relative_score" | "rrf" | "dense" | "lexical";
export type Band = "strong" | "partial" | "weak";
export type Verdict = "supported" | "weak" | "unsupported";
export type AnswerStatus = "answered" | "abstained" | "chitchat" | "conversation" | "retrieved";

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  retryable: boolean;
  request_id: string | null;
}

export interface Signals {
  dense: number | null;
  bm25: number | null;
  overlap: number | null;
  sentence: number | null;
}

export interface SourceRecord {
  n: number;
  doc_id: string;
  duplicate_of: string | null;
  revision: number;
  library: Library;
  title: string;
  authors: string[];
  year: number | null;
  section: string;
  page: number | null;
  chunk_index: number;
  start: number;
  end: number;
  distance: number | null;
  similarity: number | null;
  band: Band | null;
  score: number;
  signals: Signals;
  preview: string;
  source_url: string | null;
  view_url: string;
  licence: string | null;
}

export interface CitationRecord {
  n: number;
  start: number;
  end: number;
  quote: string;
  support: number;
}

export interface SentenceRecord {
  text: string;
  answer_start: number;
  answer_end: number;
  verdict: Verdict;
  citations: CitationRecord[];
}

export interface NoticeRecord {
  code: string;
  message: string;
}

export interface TraceItem {
  chunk: number;
  rank: number;
  score: number;
  kept: boolean;
  reason: string;
}

export interface StageRecord {
  name: string;
  ms: number;
  in: number;
  out: number;
  items?: TraceItem[];
}

export interface ContextRecord {
  budget: number;
  planned: number;
  seen: number | null;
  used: number[];
  trimmed: number[];
  dropped: number[];
}

export interface TraceRecord {
  stages: StageRecord[];
  llm_calls: number;
  context: ContextRecord | null;
}

export interface AnswerRecord {
  answer_id: string;
  conversation_id: string | null;
  answer: string;
  status: AnswerStatus;
  generator: string;
  embedder: string;
  library: Scope;
  query_mode: Mode;
  retrieval_strategy: Strategy;
  rewritten_query: string | null;
  confidence: number;
  notices: NoticeRecord[];
  sources: SourceRecord[];
  sentences: SentenceRecord[];
  trace: TraceRecord | null;
  usage: { prompt_tokens: number | null; completion_tokens: number | null };
}

/** What the store keeps of an answer: the record and the question it answered. */
export interface StoredAnswer extends AnswerRecord {
  asked?: { question: string; library: Scope };
  at?: string;
}

export interface ChatRequest {
  message: string;
  conversation_id?: string | null;
  library: Scope;
  query_mode: Mode;
  retrieval_strategy?: Strategy | null;
  doc_ids?: string[];
  top_k?: number;
  model?: string;
  trace: "none" | "summary" | "full";
  stream: true;
}

export interface DocumentRecord {
  doc_id: string;
  library: Library;
  title: string;
  authors: string[];
  year: number | null;
  type: string;
  sha256: string;
  revision: number;
  state: string;
  characters: number;
  pages: number;
  chunks: number;
  embedded: number;
  duplicate_of: string | null;
  source_url: string | null;
  licence: string | null;
  has_original: boolean;
  flags: string[];
  filename: string;
  arxiv_id: string | null;
  added_at: string;
}

export interface DocumentPage {
  documents: DocumentRecord[];
  next_cursor: string | null;
}

export interface DocumentText {
  text: string;
  start: number;
  end: number;
  length: number;
  revision: number;
}

export interface PageBoxes {
  page: number;
  width: number;
  height: number;
  rects: [number, number, number, number][];
}

export interface Receipt {
  pages: number;
  characters: number;
  covered_characters: number;
  chunks: number;
  vectors: number;
}

export interface IngestOutcome {
  filename: string;
  doc_id: string | null;
  status: "indexed" | "unchanged" | "replaced" | "failed";
  reason: string | null;
  duplicate_of: string | null;
  receipt: Receipt | null;
}

export interface IngestResponse {
  job_id: string;
  documents: IngestOutcome[];
}

export interface JobRecord {
  id: string;
  kind: string;
  state: "queued" | "running" | "paused" | "done" | "failed" | "cancelled";
  done: number;
  total: number | null;
  unit: string;
  eta_s: number | null;
  errors: string[];
  files: { filename: string; state: string; progress: number }[];
  result: Record<string, unknown> | null;
  created_at: string;
  updated_at: string;
}

export interface Fingerprint {
  embedding_model: string;
  model_digest: string;
  dimension: number;
  query_prefix: string;
  passage_prefix: string;
  chunker: string;
  analyzer: string;
}

export interface LibraryRecord {
  library: Library;
  documents: number;
  chunks: number;
  embedded: number;
  bytes: number;
  fingerprint: Fingerprint | null;
  build: string;
}

export interface LibrariesResponse {
  libraries: LibraryRecord[];
  default_library: Library;
}

export interface DeleteRecord {
  doc_id: string;
  chunks: number;
  vectors: number;
  originals: number;
  quotes_blanked: number;
  purged: boolean;
}

export interface ConversationSummary {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
}

export interface Turn {
  role: "user" | "assistant" | "system";
  content: string;
  answer_id: string | null;
  at?: string;
}

export interface Conversation extends ConversationSummary {
  turns: Turn[];
}

/** A matched word, as code points of the hit's text. */
export interface Highlight {
  start: number;
  end: number;
}

export interface SearchHit {
  doc_id: string;
  duplicate_of: string | null;
  revision: number;
  library: Library;
  title: string;
  authors: string[];
  year: number | null;
  type: string;
  section: string;
  page: number | null;
  chunk_index: number;
  start: number;
  end: number;
  text: string;
  highlights: Highlight[];
  score: number;
  band: Band | null;
  signals: Signals;
  source_url: string | null;
  view_url: string;
}

export interface SearchResponse {
  query: string;
  library: string;
  hits: SearchHit[];
  notices: NoticeRecord[];
}

export interface Ledger {
  articles: number;
  indexed: number;
  redirects: number;
  skipped: Record<string, number>;
}

export interface Health {
  status: "ready" | "starting" | "failed";
  version: string;
  embedder: string | null;
  generator: string | null;
  hosts: { name: string; url: string; reachable: boolean; detail: string }[];
}

export interface Diagnostics extends Record<string, unknown> {
  version: string;
  embedder: string;
  generator: string;
  watermarks: Record<string, number>;
}

export interface ModelsResponse {
  installed: { name: string; size_bytes: number | null }[];
  loaded: string[];
  in_use: Record<string, string>;
  fit: boolean | null;
}

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** One arm of an experiment: settings that were tried, and what they scored. */
export interface ReportArm {
  name: string;
  settings: Record<string, unknown>;
  measures: Record<string, Interval>;
  grounded_rate: number | null;
  overlap_with_baseline: number;
  /** The experiment's measure by question id. */
  per_question: Record<string, number>;
}

export interface ReportComparison {
  arm: string;
  baseline: string;
  n: number;
  difference: Interval;
  p: number;
  p_holm: number;
  verdict: string;
}

export interface ReportExperiment {
  collection: string;
  questions: number;
  passages: number;
  baseline: string;
  measure: string;
  arms: ReportArm[];
  comparisons: ReportComparison[];
}

export interface ArmTimings {
  p50_ms: number;
  p95_ms: number;
  stages_p50_ms: Record<string, number>;
}

/** A report of the evaluation harness. */
export interface EvaluationReport {
  title: string;
  provenance: { git_sha: string; settings_hash: string; fingerprint: string; models: Record<string, string>; seed: number };
  remarks: string[];
  figures: Record<string, number>;
  experiments: ReportExperiment[];
  /** Collection, then arm. */
  timings: Record<string, Record<string, ArmTimings>>;
}

export interface EvaluationSummary {
  id: string;
  title: string;
  created_at: string | null;
}
