import type { AnswerRecord, Question, QuoteRecord, Scope, SentenceRecord, SourceRecord, StoredAnswer } from "@/api/types";
import { conditionOf } from "@/lib/filters";
import type { StreamEvent, WaitsFor } from "@/api/stream";

/** `broken`: a stored question that got no answer, because the page or the server went away. */
export type ExchangeState = "waiting" | "streaming" | "done" | "stopped" | "failed" | "broken";

/** Characters of a question at most. */
export const LONGEST = 4000;

/** A document that a question is limited to. */
export interface Limit {
  doc_id: string;
  library: SourceRecord["library"];
  title: string;
}

/** What a model reads before its first word; `since` in milliseconds as Date.now() has them. */
export interface Reading {
  model: string;
  tokens: number;
  /** Null before the first measurement. */
  seconds: number | null;
  /** A long document is read in so many parts; this is the one that is read now, from 1. */
  part: number;
  parts: number;
  /** Set when the first word is late. */
  waitsFor: WaitsFor | null;
  since: number;
}

/** A question and what became of it. */
export interface Exchange {
  id: string;
  question: string;
  library: Scope;
  scope: readonly Limit[];
  /** What else it was narrowed to, in words. */
  filter: string;
  /** What was sent; null where that is not kept. */
  request: Question | null;
  /** Answer ids of the versions of this question, oldest first; empty while there is one. */
  versions: readonly string[];
  state: ExchangeState;
  /** Provisional text, replaced by the guarded answer when it closes. */
  draft: string;
  sources: readonly SourceRecord[];
  /** What the documents say, before a model wrote anything. */
  quote: QuoteRecord | null;
  reading: Reading | null;
  answerId: string | null;
  answer: AnswerRecord | null;
  error: Error | null;
}

/** A question of which nothing is known yet. */
export function asked(id: string, question: string, library: Scope, scope: readonly Limit[], filter = ""): Exchange {
  return { id, question, library, scope, filter, request: null, versions: [], state: "waiting", draft: "", sources: [], quote: null, reading: null, answerId: null, answer: null, error: null };
}

/** The exchange after one event of its stream. */
export function received(exchange: Exchange, event: StreamEvent): Exchange {
  switch (event.kind) {
    case "meta":
      return { ...exchange, answerId: event.answerId };
    case "sources":
      // Another search may have dropped what the quote cites; a new one follows where there is any.
      return { ...exchange, sources: event.sources, quote: stands(exchange.quote, event.sources) ? exchange.quote : null };
    case "quote":
      return { ...exchange, quote: event.quote, sources: exchange.sources.map((source) => asQuoted(source, event.quote)) };
    case "reading":
      return { ...exchange, reading: { model: event.model, tokens: event.tokens, seconds: event.seconds, part: event.part, parts: event.parts, waitsFor: event.waits_for, since: event.waits_for === null ? Date.now() : (exchange.reading?.since ?? Date.now()) } };
    case "token":
      return { ...exchange, state: "streaming", draft: exchange.draft + event.text };
    case "final":
      return answered(exchange, event.answer);
  }
}

/** The exchange with its final answer. */
export function answered(exchange: Exchange, answer: AnswerRecord): Exchange {
  return { ...exchange, state: "done", answer, answerId: answer.answer_id, library: answer.library, sources: answer.sources, quote: answer.quote ?? null };
}

/** Whether an answer is quotes alone: no model's word is in it. */
export function isQuoted({ generator }: Pick<AnswerRecord, "generator">): boolean {
  return generator.startsWith("extractive");
}

/** The exchange whose sources are shown: the one that a pill points at, else the last. */
export function lookedAt(exchanges: readonly Exchange[], pointed: string | undefined): Exchange | undefined {
  return exchanges.find((one) => one.id === pointed) ?? exchanges.at(-1);
}

/** The request that a stored answer answered, to send it again. */
export function requestOf({ asked: { question, filters, library, query_mode, retrieval_strategy, model, fallback, evidence } }: StoredAnswer): Question {
  const metadata = Object.fromEntries(filters.metadata.map(conditionOf));
  return { message: question, library, query_mode, retrieval_strategy, model, fallback, evidence, filters: { ...filters, metadata }, trace: "full", stream: true };
}

/** The words of a model that were cut, by Stop or at its length limit, so that it can go on; null where that helps nobody. */
export function cutWords(exchange: Exchange): string | null {
  const { state, request, reading, answer } = exchange;
  const cut = state === "stopped" ? reading !== null : answer?.notices.some((notice) => notice.code === "answer_cut") === true;
  const { text } = shownOf(exchange).words;
  return cut && request !== null && text !== "" ? text : null;
}

/** A source as it stands with a quote: what it quotes is not far from the question, whatever the search measured. */
function asQuoted(source: SourceRecord, quote: QuoteRecord): SourceRecord {
  const quoted = source.band === "weak" && quote.sentences.some((sentence) => sentence.citations.some((one) => one.n === source.n));
  return quoted ? { ...source, band: "partial" } : source;
}

function stands(quote: QuoteRecord | null, sources: readonly SourceRecord[]): boolean {
  const numbers = new Set(sources.map((source) => source.n));
  return quote?.sentences.every((sentence) => sentence.citations.every((one) => numbers.has(one.n))) ?? false;
}

/** Text with its checked sentences, offsets in code points of this text. */
export interface Passage {
  text: string;
  sentences: readonly SentenceRecord[];
}

/** What is shown of an exchange. */
export interface Shown {
  quote: Passage | null;
  /** Where the quote stands: above the words, or under them, folded away once they are all there. */
  place: "above" | "under";
  words: Passage;
}

/**
 * Split an exchange into the quote and what stands with it, so that each is shown once.
 *
 * An answer that begins with the quote is the quote and the rest. A model that speaks alone has it under its words, or alone where
 * none came.
 */
export function shownOf({ answer, draft, quote, state }: Exchange): Shown {
  const whole: Passage = { text: answer?.answer ?? draft, sentences: answer?.sentences ?? [] };
  if (quote === null) return { quote: null, place: "above", words: whole };
  const begins = quote.leads || answer?.notices.some((notice) => notice.code === "quoted_instead") === true;
  if (begins && whole.text.startsWith(quote.text)) return { quote, place: "above", words: after(quote.text, whole) };
  const led = quote.leads || (whole.text === "" && state !== "waiting" && state !== "streaming");
  return { quote, place: led ? "above" : "under", words: whole };
}

/** What follows the first text, with its sentences where they stand then. */
function after(first: string, { text, sentences }: Passage): Passage {
  const rest = text.slice(first.length).trimStart();
  const cut = Array.from(text.slice(0, text.length - rest.length)).length;
  return {
    text: rest,
    sentences: sentences
      .filter((sentence) => sentence.answer_start >= cut)
      .map((sentence) => ({ ...sentence, answer_start: sentence.answer_start - cut, answer_end: sentence.answer_end - cut })),
  };
}
