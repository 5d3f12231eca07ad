import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useMemo } from "react";
import { call } from "@/api/http";
import { conversation, storedAnswer } from "@/api/queries";
import { ask } from "@/api/stream";
import type { EvidenceKind, Mode, Question, Scope, Strategy } from "@/api/types";
import { preferences } from "@/hooks/use-preferences";
import { useStore } from "@/hooks/use-store";
import type { Workspace } from "@/hooks/use-workspace";
import { answered, asked, cutWords, received, requestOf, type Exchange, type Limit } from "@/lib/exchange";
import { filterFields, filterWords, narrows } from "@/lib/filters";
import { t } from "@/lib/language";
import { localId } from "@/lib/local-id";
import { Store } from "@/lib/store";
import { tabs } from "@/lib/tabs";

export interface Controls {
  mode: Mode;
  strategy: Strategy | null;
  model: string | null;
  /** How much a model is handed; null: as the server is set. */
  evidence: EvidenceKind | null;
  /** Let a model read the nearest passages where none passes the cutoff. */
  nearest: boolean;
}

/** What of a question is not as the page is set: its document, its mode, its model. */
export interface Otherwise {
  document?: Limit;
  mode?: Mode;
  model?: string;
  /** The exchange whose question this is, changed or once more: a branch next to it. */
  replaces?: Exchange;
}

/** How far a conversation was scrolled, in pixels. */
export interface Place {
  conversation: string;
  top: number;
}

/** A stored conversation on its way onto the page, and why it did not come. */
interface Opening {
  id: string;
  error: Error | null;
}

export interface Chat {
  conversationId: string | null;
  exchanges: readonly Exchange[];
  opening: Opening | null;
  controls: Controls;
  /** What stands in the question box. */
  typed: string;
  /** The conversation of this tab before the page was loaded again, to which the Ask page leads. */
  left: string | null;
}

/** How a question is asked unless a person says otherwise. */
export const CONTROLS: Controls = { mode: "general", strategy: null, model: null, evidence: null, nearest: false };

/** The chat and the connection of the answer that is under way. */
export class ChatSession {
  readonly store: Store<Chat>;
  /** Where the conversation was left, for the next time it is shown. */
  place: Place | null;
  #running: AbortController | null = null;
  readonly #workspace: Store<Workspace>;

  constructor(workspace: Store<Workspace>, kept: { controls?: Controls; typed?: string; place?: Place | null; left?: string | null } = {}) {
    this.#workspace = workspace;
    this.place = kept.place ?? null;
    this.store = new Store<Chat>({ conversationId: null, exchanges: [], opening: null, controls: { ...CONTROLS, mode: preferences().mode ?? CONTROLS.mode, ...kept.controls }, typed: kept.typed ?? "", left: kept.left ?? null });
  }

  /** Ask within the current scope and as the page is set, unless told otherwise; an answer under way is stopped first. */
  async ask(question: string, client: QueryClient, otherwise: Otherwise = {}): Promise<void> {
    const workspace = this.#workspace.get();
    const library = otherwise.document?.library ?? workspace.library;
    const scope = otherwise.document === undefined ? workspace.scope : [otherwise.document];
    const fresh = asked(localId(), question, library, scope, otherwise.document === undefined ? filterWords(workspace.filter) : "");
    await this.#send(fresh, this.#request(question, library, scope, otherwise), otherwise.replaces ?? null, client);
  }

  /** Let the model go on where its answer was cut; what it says in all is checked and takes the place of the cut one. */
  async goOn(cut: Exchange, client: QueryClient): Promise<void> {
    const begun = cutWords(cut);
    if (begun === null || cut.request === null) return;
    const { conversationId } = this.store.get();
    // The server keeps a stopped question alone, and drops it when it comes again.
    const replaces = cut.answer?.answer_id ?? null;
    const request = { ...cut.request, begun, replaces, conversation_id: conversationId };
    await this.#send(asked(localId(), cut.question, cut.library, cut.scope, cut.filter), request, cut, client);
  }

  /** Send a question and show what comes; an answer under way is stopped first. */
  async #send(shown: Exchange, request: Question, replaced: Exchange | null, client: QueryClient): Promise<void> {
    this.stop();
    const running = new AbortController();
    this.#running = running;
    const { id, question } = shown;
    const { exchanges: before } = this.store.get();
    const kept = replaced === null ? before : before.slice(0, before.findIndex((e) => e.id === replaced.id));
    // Asked again, a question that was broken off goes: the server drops it too.
    this.store.set((chat) => ({ ...chat, exchanges: [...kept.filter((e) => e.state !== "broken" || e.question !== question), { ...shown, request }] }));
    // The document that is open gives way to the sources of the new answer.
    this.#workspace.set((w) => ({ ...w, focus: null, reader: null }));
    const paint = new TokenPainter((text) => this.#update(id, (e) => received(e, { kind: "token", text })));
    try {
      let closed = false;
      for await (const event of ask(request, running.signal)) {
        if (event.kind === "token") {
          paint.add(event.text);
          continue;
        }
        if (event.kind === "final") {
          closed = true;
          paint.drop();
        }
        this.#update(id, (e) => received(e, event));
        if (event.kind === "meta" && replaced !== null) this.#update(id, (e) => ({ ...e, versions: versionsAfter(replaced, request, event.answerId) }));
        const conversationId = event.kind === "meta" ? event.conversationId : event.kind === "final" ? event.answer.conversation_id : null;
        if (conversationId !== null) this.store.set((chat) => ({ ...chat, conversationId }));
      }
      if (!closed) throw new Error(t("The connection ended before the answer was complete."));
    } catch (error) {
      paint.flush();
      const stopped = running.signal.aborted;
      this.#update(id, (e) => ({ ...e, state: stopped ? "stopped" : "failed", error: stopped ? null : asError(error) }));
      // Where no branch began, the old one is still what there is.
      this.store.set((chat) => ({ ...chat, exchanges: chat.exchanges.some((e) => e.id === id && e.answerId === null) ? [...before, ...chat.exchanges.slice(-1)] : chat.exchanges }));
    } finally {
      if (this.#running === running) this.#running = null;
      tabs.tell(this.store.get().conversationId);
      void client.invalidateQueries({ queryKey: ["conversations"] });
    }
  }

  /** Stop the answer under way; closing the connection stops the model. */
  stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  /** Begin a new conversation; the old one stays on the server. */
  reset(): void {
    this.stop();
    this.store.set((chat) => ({ ...chat, conversationId: null, exchanges: [], opening: null, left: null }));
    this.#workspace.set((w) => ({ ...w, focus: null, reader: null }));
  }

  /** Show a stored conversation with the answers that are still kept. */
  async open(conversationId: string, client: QueryClient): Promise<void> {
    this.stop();
    const opening: Opening = { id: conversationId, error: null };
    this.store.set((chat) => ({ ...chat, conversationId: null, exchanges: [], opening }));
    this.#workspace.set((w) => ({ ...w, focus: null }));
    try {
      await this.#load(conversationId, client, () => this.store.get().opening === opening);
    } catch (error) {
      this.store.set((chat) => (chat.opening === opening ? { ...chat, opening: { ...opening, error: asError(error) } } : chat));
    }
  }

  /** Go to another version of a question, with what followed it. */
  async show(answerId: string, client: QueryClient): Promise<void> {
    const { conversationId } = this.store.get();
    if (conversationId === null) return;
    this.stop();
    await call("PUT", `api/v1/conversations/${encodeURIComponent(conversationId)}/branch`, { answer_id: answerId });
    await this.follow(conversationId, client);
    tabs.tell(conversationId);
  }

  /** Show what another tab added to the conversation that is shown here too. */
  async follow(conversationId: string, client: QueryClient): Promise<void> {
    const wanted = (): boolean => this.#running === null && this.store.get().conversationId === conversationId;
    if (wanted()) await this.#load(conversationId, client, wanted);
  }

  /** Fetch a conversation with its answers and show it, as long as it is the one that is wanted. */
  async #load(conversationId: string, client: QueryClient, wanted: () => boolean): Promise<void> {
    const stored = await client.query(conversation(conversationId));
    if (!wanted()) return;
    const known = new Map(this.store.get().exchanges.flatMap((one) => (one.answer === null ? [] : [[one.answer.answer_id, one]])));
    const exchanges: Exchange[] = [];
    for (const turn of stored.turns) {
      if (turn.role === "user") {
        exchanges.push({ ...asked(localId(), turn.content, this.#workspace.get().library, []), state: "broken", answerId: turn.answer_id, versions: turn.versions });
      } else if (turn.role === "assistant") {
        const last = exchanges.at(-1);
        if (last === undefined) continue;
        exchanges[exchanges.length - 1] = { ...(known.get(turn.answer_id ?? "") ?? { ...last, state: "done", draft: turn.content }), versions: turn.versions };
      }
    }
    this.store.set((chat) => ({ ...chat, conversationId, exchanges }));
    await Promise.all(
      exchanges.map(async (exchange) => {
        if (exchange.answerId === null || exchange.answer !== null || exchange.state === "broken") return;
        const answer = await client.query(storedAnswer(exchange.answerId)).catch(() => null);
        if (answer?.kept !== "full") return;
        this.#update(exchange.id, (e) => ({ ...answered(e, answer), request: requestOf(answer) }));
      }),
    );
    if (wanted()) this.store.set((chat) => ({ ...chat, opening: null }));
  }

  setControls(change: Partial<Controls>): void {
    this.store.set((chat) => ({ ...chat, controls: { ...chat.controls, ...change } }));
  }

  /** Remember where a conversation is read. */
  leave(place: Place): void {
    this.place = place;
  }

  setTyped(typed: string): void {
    this.store.set((chat) => ({ ...chat, typed }));
  }

  #request(question: string, library: Scope, scope: readonly Limit[], { document, mode, model, replaces }: Otherwise): Question {
    const { conversationId, controls } = this.store.get();
    const request: Question = { message: question, library, query_mode: mode ?? controls.mode, trace: "full", stream: true };
    if (conversationId !== null) request.conversation_id = conversationId;
    if (replaces?.answerId != null) request.replaces = replaces.answerId;
    if (controls.strategy !== null) request.retrieval_strategy = controls.strategy;
    const writer = model ?? controls.model;
    if (writer !== null) request.model = writer;
    if (controls.evidence !== null) request.evidence = controls.evidence;
    if (controls.nearest) request.fallback = true;
    const { filter, aside } = this.#workspace.get();
    if (document === undefined && (narrows(filter) || aside.length > 0)) {
      request.filters = { ...filterFields(filter), exclude_doc_ids: aside.map((one) => one.doc_id) };
    }
    if (scope.length > 0) request.doc_ids = scope.map((document) => document.doc_id);
    return request;
  }

  #update(id: string, change: (exchange: Exchange) => Exchange): void {
    this.store.set((chat) => ({ ...chat, exchanges: chat.exchanges.map((e) => (e.id === id ? change(e) : e)) }));
  }
}

/** Collects tokens and paints them once per frame, so that a fast model cannot keep the page busy. */
class TokenPainter {
  #text = "";
  #frame = 0;
  readonly #paint: (text: string) => void;

  constructor(paint: (text: string) => void) {
    this.#paint = paint;
  }

  add(text: string): void {
    this.#text += text;
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.flush());
  }

  flush(): void {
    const text = this.#text;
    this.drop();
    if (text !== "") this.#paint(text);
  }

  drop(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#text = "";
  }
}

/** The versions of a question once another exchange stands in the place of one: next to it, or instead of a stopped one. */
function versionsAfter({ versions, answerId }: Exchange, { replaces }: Question, now: string): readonly string[] {
  if (replaces == null) return versions.map((one) => (one === answerId ? now : one));
  return [...(versions.length > 0 ? versions : [replaces]), now];
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}

export const ChatContext = createContext<ChatSession | null>(null);

export interface ChatActions {
  ask: (question: string) => void;
  /** Ask a question in the place of another, or the same once more; the old answer stays as a version. */
  replace: (exchange: Exchange, question: string, model?: string) => void;
  show: (answerId: string) => Promise<void>;
  /** Let the model go on where its answer was cut. */
  goOn: (cut: Exchange) => void;
  summarise: (document: Limit) => void;
  stop: () => void;
  reset: () => void;
  open: (conversationId: string) => Promise<void>;
  setControls: (change: Partial<Controls>) => void;
  setTyped: (typed: string) => void;
}

export function useChatSession(): ChatSession {
  const session = useContext(ChatContext);
  if (session === null) throw new Error("useChat needs a ChatContext above it");
  return session;
}

/** The one hook that owns the stream. */
export function useChat(): Chat & ChatActions & { busy: boolean } {
  const session = useChatSession();
  const client = useQueryClient();
  const chat = useStore(session.store);
  const actions = useMemo<ChatActions>(
    () => ({
      ask: (question) => void session.ask(question, client),
      replace: (replaces, question, model) => void session.ask(question, client, model === undefined ? { replaces } : { replaces, model }),
      show: (answerId) => session.show(answerId, client),
      goOn: (cut) => void session.goOn(cut, client),
      summarise: (document) => void session.ask(t("Summarise “{title}”", { title: document.title }), client, { document, mode: "summary" }),
      stop: () => session.stop(),
      reset: () => session.reset(),
      open: (id) => session.open(id, client),
      setControls: (change) => session.setControls(change),
      setTyped: (typed) => session.setTyped(typed),
    }),
    [session, client],
  );
  const last = chat.exchanges.at(-1);
  return { ...chat, ...actions, busy: last !== undefined && (last.state === "waiting" || last.state === "streaming") };
}
