/**
 * The names the page uses for the shapes of the HTTP contract. Every build and check generates schema.d.ts from openapi.json.
 */
import type { components } from "@/api/schema";

type Schemas = components["schemas"];

export type Problem = Schemas["Problem"];

export type ChatRequest = Schemas["ChatRequest"];
export type Library = Schemas["Library"];
export type Scope = NonNullable<ChatRequest["library"]>;
export type Mode = NonNullable<ChatRequest["query_mode"]>;
export type Strategy = NonNullable<ChatRequest["retrieval_strategy"]>;
export type EvidenceKind = NonNullable<ChatRequest["evidence"]>;
/** What the page sends: defaults are the server's. */
export type Question = Pick<ChatRequest, "message"> & Partial<ChatRequest>;

export type SourceRecord = Schemas["Source"];
export type AnswerRecord = Schemas["QueryResponse"];
/** An answer as it was kept, with the question that it answered. */
export type StoredAnswer = Schemas["StoredAnswer"];
export type AnswerList = Schemas["AnswerList"];
export type Notice = Schemas["Notice"];
export type Signals = Schemas["Signals"];
export type Band = NonNullable<SourceRecord["band"]>;
export type SentenceRecord = Schemas["Sentence"];
export type QuoteRecord = Schemas["Quote"];
export type NearestPlace = Schemas["NearestRecord"];
export type CitationRecord = Schemas["Citation"];
export type StageRecord = Schemas["StageTrace"];
export type TraceItem = Schemas["TraceItem"];
export type ContextRecord = Schemas["ContextTrace"];

export type LibrariesResponse = Schemas["LibraryList"];
export type LibraryRecord = Schemas["LibraryStatus"];
export type CollectionStats = Schemas["CollectionStats"];
export type DuplicateGroup = Schemas["Duplicates"];
export type DuplicateList = Schemas["DuplicateList"];
export type DocumentRecord = Schemas["Document"];
export type DocumentPage = Schemas["DocumentPage"];
/** The corrections of a revision's text; DocumentCorrection is of the document's facts. */
export type CorrectionList = Schemas["CorrectionList"];
export type TextCorrection = Schemas["CorrectionReply"];
export type DocumentCorrection = Partial<Schemas["DocumentCorrection"]>;
export type FilterFields = Schemas["FilterFields"];
export type TagList = Schemas["TagList"];
export type CollectionList = Schemas["CollectionList"];
export type SavedFilter = Schemas["SavedFilter"];
export type DocumentText = Schemas["TextSpan"];
export type PageBoxes = Schemas["PageBoxes"];
export type SearchResponse = Schemas["SearchResponse"];
export type SearchHit = Schemas["SearchHit"];
export type Highlight = Schemas["Highlight"];

export type Neighbours = Schemas["Neighbours"];
export type SyncedFolders = Schemas["SyncedFolders"];
export type SyncedFolder = Schemas["SyncedFolder"];
export type IngestResponse = Schemas["IngestResponse"];
export type IngestOutcome = Schemas["IngestOutcome"];
export type Receipt = Schemas["Receipt"];
export type JobRecord = Schemas["Job"];
export type JobList = Schemas["JobList"];

export type CheckRequest = Omit<Schemas["CheckRequest"], "stream">;
export type CheckReport = Schemas["CheckReport"];
export type CheckedSentence = Schemas["CheckedSentence"];
export type CheckReference = Schemas["Reference"];
export type CheckPlace = Schemas["Finding"];
export type CheckVerdict = CheckedSentence["verdict"];
export type FileText = Schemas["FileText"];

export type Conversation = Schemas["Conversation"];
export type ConversationList = Schemas["ConversationList"];
export type ConversationSummary = Schemas["ConversationSummary"];
export type SuggestionList = Schemas["SuggestionList"];
export type Feedback = Schemas["FeedbackRequest"];

export type Health = Schemas["Health"];
export type Diagnostics = Schemas["Diagnostics"];
export type ModelsResponse = Schemas["ModelList"];
export type Prompts = Schemas["PromptReply"];
export type ChosenHost = Schemas["HostReply"];
export type Ledger = Schemas["LedgerSummary"];
export type ShareList = Schemas["ShareList"];
export type MadeShare = Schemas["MadeShare"];
export type SharedAnswer = Schemas["SharedAnswer"];
export type KeyList = Schemas["KeyList"];
export type KeyRecord = Schemas["KeyReply"];
export type MadeKey = Schemas["MadeKey"];
export type NewKey = Partial<Schemas["NewKey"]> & Pick<Schemas["NewKey"], "name" | "scopes">;
export type KeyScope = NewKey["scopes"][number];

export type EvaluationRequest = Partial<Schemas["EvaluationBody"]>;
export type EvaluationKind = Schemas["EvaluationBody"]["kind"];
export type AnswerCase = Schemas["CaseBody"];
export type EvaluationList = Schemas["EvaluationList"];
export type EvaluationReport = Schemas["EvaluationReport"];
export type ReportExperiment = Schemas["ReportExperiment"];
export type ArmTimings = Schemas["ArmTimings"];
