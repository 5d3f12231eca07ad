import type { Element, ElementContent, Root, Text } from "hast";
import { SKIP, visit } from "unist-util-visit";
import { unitOffsets } from "@/lib/codepoints";
import { type Message, t } from "@/lib/language";

/** A sentence of the answer by its place in the Markdown source, in code points, as the server sends it. */
export interface MarkedSentence {
  answer_start: number;
  answer_end: number;
  verdict: "supported" | "unsure" | "contradicted" | "not_found" | "no_claim";
  citations?: readonly { n: number }[];
}

export interface AnswerMarks {
  /** The Markdown the tree was made from. */
  source: string;
  sentences: readonly MarkedSentence[];
  /** Numbers of the sources, which may have gaps; any other `[n]` stays text. */
  sources: ReadonlySet<number>;
  /** Tint each sentence by the source that it cites first. */
  tinted?: boolean;
  /** Sources that are set aside: sentences that cite nothing else are hidden. */
  aside?: ReadonlySet<number>;
}

/** How many tints there are; sources that are so many apart share one. */
export const TINTS = 6;

export function tintOf(n: number): string {
  return `source-tint-${(n - 1) % TINTS}`;
}

const MARK = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;

interface Span {
  start: number;
  end: number;
  verdict: MarkedSentence["verdict"];
  classes: string[];
}

/**
 * rehype plugin: `[n]` becomes `<sup data-citation data-sentence>`, sentences that no source says get a class.
 *
 * Runs after sanitising, on text nodes only and never inside code, so nothing of the answer reaches a tag or an attribute.
 */
export function answerMarks(marks: AnswerMarks): () => (tree: Root) => void {
  const spans = sentenceSpans(marks);
  return () => (tree) => {
    visit(tree, (node, index, parent) => {
      if (node.type === "element" && (node.tagName === "code" || node.tagName === "pre" || node.tagName === "sup")) return SKIP;
      if (node.type !== "text" || parent === undefined || index === undefined) return undefined;
      const pieces = markText(node, marks, spans);
      if (pieces === null) return undefined;
      parent.children.splice(index, 1, ...pieces);
      return [SKIP, index + pieces.length];
    });
  };
}

function sentenceSpans({ source, sentences, tinted, aside }: AnswerMarks): Span[] {
  const ordered = [...sentences].sort((a, b) => a.answer_start - b.answer_start);
  const flat = ordered.flatMap((s) => [s.answer_start, s.answer_end]);
  const ascending = flat.every((offset, i) => i === 0 || offset >= (flat[i - 1] ?? 0));
  const units = ascending ? unitOffsets(source, flat) : flat.map((offset) => unitOffsets(source, [offset])[0] ?? 0);
  return ordered.map((s, i) => {
    const cited = (s.citations ?? []).map((citation) => citation.n);
    const classes = tinted === true && cited[0] !== undefined ? [tintOf(cited[0])] : [];
    if (cited.length > 0 && cited.every((n) => aside?.has(n) === true)) classes.push("sentence-aside");
    return { start: units[2 * i] ?? 0, end: units[2 * i + 1] ?? 0, verdict: s.verdict, classes };
  });
}

/** The node in pieces, or null when there is nothing to mark in it. */
function markText(node: Text, marks: AnswerMarks, spans: readonly Span[]): ElementContent[] | null {
  const from = node.position?.start.offset;
  const to = node.position?.end.offset;
  // Escapes and entities make a node shorter than its source; then its own offsets say nothing about sentences.
  const exact = from !== undefined && to !== undefined && marks.source.slice(from, to) === node.value;
  const sentenceAt = (at: number): number =>
    from === undefined ? -1 : spans.findIndex((s) => s.start <= from + (exact ? at : 0) && from + (exact ? at : 0) < s.end);
  const cuts = new Set<number>([0, node.value.length]);
  if (exact) {
    for (const span of spans) {
      for (const edge of [span.start - from, span.end - from]) if (edge > 0 && edge < node.value.length) cuts.add(edge);
    }
  }
  const pills = new Map<number, { end: number; numbers: number[]; tail: string }>();
  for (const match of node.value.matchAll(MARK)) {
    const numbers = (match[1] ?? "").split(",").map(Number);
    if (!numbers.every((n) => marks.sources.has(n))) continue;
    const end = match.index + match[0].length;
    for (const cut of [...cuts]) if (cut > match.index && cut < end) cuts.delete(cut);
    cuts.add(match.index).add(end);
    pills.set(match.index, { end, numbers, tail: "" });
  }
  // The full stop after a mark stays on its line.
  for (const pill of pills.values()) {
    const tail = /^[.,;:!?)\]}”’"']+/.exec(node.value.slice(pill.end))?.[0] ?? "";
    if (tail === "") continue;
    for (const cut of [...cuts]) if (cut >= pill.end && cut < pill.end + tail.length) cuts.delete(cut);
    pill.end += tail.length;
    pill.tail = tail;
    cuts.add(pill.end);
  }
  const edges = [...cuts].sort((a, b) => a - b);
  const pieces = edges.slice(0, -1).flatMap((start, i): ElementContent[] => {
    const end = edges[i + 1] ?? start;
    const sentence = sentenceAt(start);
    const pill = pills.get(start);
    if (pill !== undefined) return pill.numbers.map((n, at) => citation(n, sentence, at === pill.numbers.length - 1 ? pill.tail : ""));
    return phrase(node.value.slice(start, end), spans[sentence]);
  });
  return pieces.length === 1 && pieces[0]?.type === "text" ? null : pieces;
}

function citation(n: number, sentence: number, tail: string): Element {
  return { type: "element", tagName: "sup", properties: { dataCitation: n, dataSentence: sentence }, children: [{ type: "text", value: tail }] };
}

function phrase(value: string, span: Span | undefined): ElementContent[] {
  const words = value.trimEnd();
  const said = span === undefined ? undefined : SAID[span.verdict];
  const className = [...(said === undefined ? [] : [`sentence-${said.kind}`]), ...(span?.classes ?? [])];
  if (className.length === 0 || words === "") return [{ type: "text", value }];
  // The space before a pill is not underlined.
  const space: Text[] = words === value ? [] : [{ type: "text", value: value.slice(words.length) }];
  const properties = { className, ...(said === undefined ? {} : { title: t(said.title) }) };
  return [{ type: "element", tagName: "span", properties, children: [{ type: "text", value: words }] }, ...space];
}

const SAID: Partial<Record<MarkedSentence["verdict"], { kind: string; title: Message }>> = {
  unsure: { kind: "unsure", title: "A passage may say it; not confirmed" },
  contradicted: { kind: "contradicted", title: "A passage says otherwise" },
  not_found: { kind: "unsupported", title: "No passage says it" },
};
