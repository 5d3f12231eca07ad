import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { documentSuggestions } from "@/api/queries";
import type { AnswerRecord, CitationRecord, NearestPlace, QuoteRecord, SentenceRecord, SourceRecord } from "@/api/types";
import { ExchangeView } from "@/features/chat/exchange-view";
import { ContextBudget } from "@/features/inspect/context-budget";
import { initialWorkspace, WorkspaceContext, type Workspace } from "@/hooks/use-workspace";
import { asMarkdown } from "@/lib/attribution";
import { asked, received, type Exchange } from "@/lib/exchange";
import { Store } from "@/lib/store";

const SAID = "Bees dance [4].";
const WORDS = "The dance shows the way [4].";
const SOURCES = [4, 9].map((n) => ({ n, doc_id: `d${n}`, library: "public", title: `Book ${n}`, page: 2, band: "strong", authors: [] }) as unknown as SourceRecord);

function sentence(text: string, answer_start: number, cited_by: CitationRecord["cited_by"]): SentenceRecord {
  return { text, answer_start, answer_end: answer_start + text.length, verdict: "supported", citations: [{ n: 4, start: 10, end: 20, quote: "Bees dance", support: 0.9, cited_by }] };
}

function exchange(leads: boolean): Exchange {
  const quote: QuoteRecord = { text: SAID, sentences: [sentence(SAID, 0, "engine")], leads };
  return received(received(asked("1", "How do bees talk?", "public", []), { kind: "sources", sources: SOURCES }), { kind: "quote", quote });
}

function final(leads: boolean, cited_by: CitationRecord["cited_by"]): Exchange {
  const before = exchange(leads);
  const text = leads ? `${SAID}\n\n${WORDS}` : WORDS;
  const sentences = leads ? [sentence(SAID, 0, "engine"), sentence(WORDS, SAID.length + 2, cited_by)] : [sentence(WORDS, 0, cited_by)];
  const answer = { answer_id: "a", answer: text, quote: before.quote, model_text: WORDS, sentences, notices: [], sources: SOURCES, nearest: [], library: "public", status: "answered", generator: "ollama:tiny", embedder: "minilm", confidence: 0.9, trace: null };
  return received(before, { kind: "final", answer: answer as unknown as AnswerRecord });
}

function shown(one: Exchange, client = new QueryClient()): string {
  return renderToStaticMarkup(
    <QueryClientProvider client={client}>
      <WorkspaceContext value={new Store<Workspace>(initialWorkspace)}>
        <ExchangeView exchange={one} onAsk={() => undefined} onReplace={() => undefined} onShow={() => Promise.resolve()} onGoOn={() => undefined} newest />
      </WorkspaceContext>
    </QueryClientProvider>,
  );
}

describe("a question while its model reads", () => {
  it("shows the quote, what is read and for how long", () => {
    const html = shown(received(exchange(true), { kind: "reading", model: "ollama:tiny", tokens: 1312, seconds: 9, part: 1, parts: 1, waits_for: null }));
    expect(html).toContain("From your documents");
    expect(html).toContain('aria-label="Citation 4"');
    expect(html).toContain("tiny is reading about 1,300 tokens, about 9 s");
    expect(html).toContain("animation-duration:9s");
    expect(html).not.toContain("<details");
  });

  it("says which part of a long document is read", () => {
    const html = shown(received(exchange(true), { kind: "reading", model: "ollama:tiny", tokens: 1312, seconds: 9, part: 3, parts: 8, waits_for: null }));
    expect(html).toContain("tiny is reading part 3 of 8, about 1,300 tokens, about 9 s");
  });

  it("has a bar without an end where nothing was measured", () => {
    const html = shown(received(exchange(false), { kind: "reading", model: "ollama:tiny", tokens: 1312, seconds: null, part: 1, parts: 1, waits_for: null }));
    expect(html).toContain("reading-sways");
    expect(html).not.toContain("animation-duration");
  });
});

describe("an answer with a quote", () => {
  it("begins with the quote and says whose the words below are", () => {
    const html = shown(final(true, "model"));
    expect(html.match(/Bees dance/g)).toHaveLength(1);
    expect(html.indexOf("In the words of tiny")).toBeGreaterThan(html.indexOf("Bees dance"));
    expect(html.indexOf("The dance shows")).toBeGreaterThan(html.indexOf("In the words of tiny"));
    expect(html).not.toContain("<details");
  });

  it("has the quote open under a model's words as they come, folded once they are all there", () => {
    const coming = shown(received(exchange(false), { kind: "token", text: WORDS }));
    expect(coming).toContain('<details open=""');
    const html = shown(final(false, "model"));
    expect(html).not.toContain("In the words of");
    expect(html).not.toContain("<details open");
    for (const one of [coming, html]) expect(one.indexOf("<details")).toBeGreaterThan(one.indexOf("The dance shows"));
    expect(html).toContain("From your documents, word for word");
  });

  it("tells a mark of the engine from one of the model, in the model's words only", () => {
    expect(shown(final(true, "engine")).match(/mark set by DocuMind/g)).toHaveLength(1);
    expect(shown(final(true, "model"))).not.toContain("mark set by DocuMind");
  });
});

describe("a refusal", () => {
  const near: NearestPlace = { library: "papers", doc_id: "d7", revision: 2, title: "Hives & wax", start: 10, end: 35, quote: "Wax is <made> by\n\nworkers.", view_url: "/?library=papers&doc=d7&revision=2&start=10&end=35" };

  function refused(nearest: NearestPlace[]): Exchange {
    const answer = { answer_id: "a", answer: "I don't know.", quote: null, model_text: null, sentences: [], notices: [], sources: [], nearest, library: "papers", status: "abstained", generator: "extractive", embedder: "minilm", confidence: 0.1, trace: null };
    return received(asked("1", "Who makes wax?", "papers", []), { kind: "final", answer: answer as unknown as AnswerRecord });
  }

  it("quotes the places that come nearest, each with a link to its words and none with a mark", () => {
    const html = shown(refused([near, { ...near, start: 90, end: 99, quote: "Bees | wax" }]));
    expect(html.indexOf("These places come nearest")).toBeGreaterThan(html.indexOf("I don&#x27;t know."));
    expect(html).toContain("“Wax is &lt;made&gt; by\nworkers.”");
    expect(html).toContain("“Bees | wax”");
    expect(html).toContain('href="/?library=papers&amp;doc=d7&amp;revision=2&amp;start=10&amp;end=35" aria-label="Hives &amp; wax: open it at these words"');
    expect(html).not.toContain("data-citation");
  });

  it("says nothing of places where there are none, nor while an answer comes", () => {
    expect(shown(refused([]))).not.toContain("nearest");
    expect(shown(asked("1", "Who makes wax?", "papers", []))).not.toContain("nearest");
  });

  it("is copied without them", () => {
    const { question, answer } = refused([near]);
    expect(asMarkdown(question, answer as AnswerRecord)).toBe("## Who makes wax?\n\nI don't know.\n");
  });
});

describe("under an answer", () => {
  it("stand further questions of the document cited first, without the one that was asked", () => {
    const client = new QueryClient();
    const questions = ["How do bees talk?", "What is a hive?", "Who keeps bees?", "What is wax?", "What is honey?"];
    client.setQueryData(documentSuggestions("public", "d4", 4).queryKey, { suggestions: questions.map((question) => ({ question, library: "public" as const, doc_id: "d4", title: "Bees" })) });
    const html = shown(final(false, "model"), client);
    expect(html).toContain('aria-label="Further questions"');
    for (const question of questions.slice(1, 4)) expect(html).toContain(`>${question}</span></button>`);
    for (const question of ["How do bees talk?", "What is honey?"]) expect(html).not.toContain(`>${question}</span></button>`);
  });

  it("stands nothing where the document has no further questions", () => {
    expect(shown(final(false, "model"))).not.toContain("Further questions");
  });
});

describe("Inspect", () => {
  it("says what was handed over and why", () => {
    const context = { budget: 350, planned: 280, seen: null, used: [4], trimmed: [], dropped: [9], prompts: "compact", evidence: "short", why: "100 tokens a second" };
    const html = renderToStaticMarkup(<ContextBudget context={context} />);
    for (const part of ["compact", "Sentences", "100 tokens a second", "280 of 350 tokens", "not reported"]) expect(html).toContain(part);
  });
});
