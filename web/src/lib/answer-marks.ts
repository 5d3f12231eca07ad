import type { Element, ElementContent, Root, Text } from "hast";
import { SKIP, visit } from "unist-util-visit";
import { unitOffsets } from "@/lib/codepoints";
import { t } from "@/lib/language";

/** A sentence of the answer by its place in the Markdown source, in code points, as the server sends it. */
export interface MarkedSentence {
  answer_start: number;
  answer_end: number;
  verdict: "supported" | "unsure" | "contradicted" | "not_found" | "no_claim";
}

export interface AnswerMarks {
  /** The Markdown the tree was made from. */
  source: string;
  sentences: readonly MarkedSentence[];
  /** Numbers of the sources, which may have gaps; any other `[n]` stays text. */
  sources: ReadonlySet<number>;
}

const MARK = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;

interface Span {
  start: number;
  end: number;
  verdict: MarkedSentence["verdict"];
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

function sentenceSpans({ source, sentences }: AnswerMarks): Span[] {
  const ordered = [...sentences].sort((a, b) => a.answer_start - b.answer_start);
  const flat = ordered.flatMap((s) => [s.answer_start, s.answer_end]);
  const ascending = flat.every((offset, i) => i === 0 || offset >= (flat[i - 1] ?? 0));
  const units = ascending ? unitOffsets(source, flat) : flat.map((offset) => unitOffsets(source, [offset])[0] ?? 0);
  return ordered.map((s, i) => ({ start: units[2 * i] ?? 0, end: units[2 * i + 1] ?? 0, verdict: s.verdict }));
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
    return phrase(node.value.slice(start, end), spans[sentence]?.verdict);
  });
  return pieces.length === 1 && pieces[0]?.type === "text" ? null : pieces;
}

function citation(n: number, sentence: number, tail: string): Element {
  return { type: "element", tagName: "sup", properties: { dataCitation: n, dataSentence: sentence }, children: [{ type: "text", value: tail }] };
}

function phrase(value: string, verdict: Span["verdict"] | undefined): ElementContent[] {
  const words = value.trimEnd();
  if (verdict === undefined || verdict === "supported" || verdict === "no_claim" || words === "") return [{ type: "text", value }];
  // The space before a pill is not underlined.
  const space: Text[] = words === value ? [] : [{ type: "text", value: value.slice(words.length) }];
  const [kind, title] =
    verdict === "unsure"
      ? ["unsure", t("A passage may say it; not confirmed")]
      : verdict === "contradicted"
        ? ["contradicted", t("A passage says otherwise")]
        : ["unsupported", t("No passage says it")];
  const properties = { className: [`sentence-${kind}`], title };
  return [{ type: "element", tagName: "span", properties, children: [{ type: "text", value: words }] }, ...space];
}
