import { ApiError, problemOf, send, Unreachable } from "@/api/http";
import type { AnswerRecord, Problem, Question, QuoteRecord, SourceRecord } from "@/api/types";
import { EventStreamParser, type ServerEvent } from "@/lib/sse";

export type StreamEvent =
  | { kind: "meta"; answerId: string; conversationId: string | null; generator: string; embedder: string }
  | { kind: "sources"; sources: SourceRecord[] }
  | { kind: "quote"; quote: QuoteRecord }
  | ({ kind: "reading" } & ReadingBody)
  | { kind: "token"; text: string }
  | { kind: "final"; answer: AnswerRecord };

export type WaitsFor = "reading" | "loading" | "queue" | "silent";

interface MetaBody {
  answer_id: string;
  conversation_id: string | null;
  generator: string;
  embedder: string;
}

interface ReadingBody {
  model: string;
  tokens: number;
  seconds: number | null;
  part: number;
  parts: number;
  /** Why there is no first word yet, once it is late. */
  waits_for: WaitsFor | null;
}

/**
 * Ask, and yield what the server streams. Aborting the signal closes the connection, which stops the model.
 *
 * Throws ApiError for a refused question and for an `error` event, Unreachable when the connection breaks before `final`.
 */
export async function* ask(request: Question, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  for await (const { event, data } of eventsOf("api/v1/chat", request, signal)) {
    const parsed = interpret(event, JSON.parse(data) as unknown);
    if (parsed !== null) yield parsed;
  }
}

/** What a route streams in reply to a body. Throws Unreachable when the connection breaks. */
export async function* eventsOf(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    signal,
  });
  if (response.body === null) throw new ApiError(problemOf(502, ""));
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventStreamParser();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw signal.aborted ? error : new Unreachable(error);
      });
      yield* parser.push(done ? "\n\n" : decoder.decode(value, { stream: true }));
      if (done) return;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function interpret(event: string, body: unknown): StreamEvent | null {
  switch (event) {
    case "meta": {
      const meta = body as MetaBody;
      return { kind: "meta", answerId: meta.answer_id, conversationId: meta.conversation_id, generator: meta.generator, embedder: meta.embedder };
    }
    case "sources":
      return { kind: "sources", sources: (body as { sources: SourceRecord[] }).sources };
    case "quote":
      return { kind: "quote", quote: body as QuoteRecord };
    case "reading":
      return { kind: "reading", ...(body as ReadingBody) };
    case "token":
      return { kind: "token", text: (body as { text: string }).text };
    case "final":
      return { kind: "final", answer: body as AnswerRecord };
    case "error":
      throw new ApiError(body as Problem);
    default:
      return null;
  }
}
