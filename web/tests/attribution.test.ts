import { describe, expect, it } from "vitest";
import type { AnswerRecord, SourceRecord } from "@/api/types";
import { asBibtex, asCslJson, asMarkdown, asRis, attribution, conversationAsMarkdown } from "@/lib/attribution";
import { asked } from "@/lib/exchange";

const source: SourceRecord = {
  n: 1,
  sample: false,
  doc_id: "d1",
  duplicate_of: null,
  filename: "",
  revision: 1,
  library: "papers",
  title: "ReAct: Reasoning & Acting in 100% {of} LMs",
  authors: ["Shunyu Yao", "Jeffrey Zhao"],
  year: 2023,
  section: "body",
  page: 4,
  chunk_index: 0,
  start: 0,
  end: 10,
  distance: 0.4,
  similarity: 0.6,
  band: "strong",
  score: 1,
  signals: { dense: 0.4, bm25: 3, overlap: 0.5, sentence: null, rerank: null },
  preview: "",
  source_url: "https://arxiv.org/abs/2210.03629v3",
  zotero_url: null,
  obsidian_url: null,
  view_url: "/",
  licence: "CC BY 4.0",
  flags: [],
};

describe("attribution", () => {
  it("names all that is known", () => {
    expect(attribution(source)).toBe("[1] ReAct: Reasoning & Acting in 100% {of} LMs. Shunyu Yao, Jeffrey Zhao. 2023. p. 4. CC BY 4.0. https://arxiv.org/abs/2210.03629v3");
  });

  it("names the page in Zotero, and no other address of a program", () => {
    const inZotero = "zotero://open-pdf/library/items/ABCD2345?page=4";
    expect(attribution({ ...source, source_url: null, zotero_url: inZotero })).toContain(`CC BY 4.0. ${inZotero}`);
    expect(attribution({ ...source, zotero_url: "zotero://fullscreen/" })).not.toContain("zotero:");
  });

  it("writes one valid BibTeX entry per document", () => {
    const other = { ...source, n: 2, doc_id: "d2", authors: [], year: null, source_url: null, licence: null, title: "Notes 🎓" };
    const text = asBibtex([source, { ...source, n: 3, page: 9 }, other]);
    expect(text.match(/@misc\{/g)).toHaveLength(2);
    expect(text).toContain("@misc{yao2023react,");
    expect(text).toContain("title = {ReAct: Reasoning \\& Acting in 100\\% of LMs}");
    expect(text).toContain("author = {Shunyu Yao and Jeffrey Zhao}");
    expect(text).toContain("eprint = {2210.03629v3}");
    expect(text).toContain("@misc{notes,");
    expect((text.match(/\{/g) ?? []).length).toBe((text.match(/\}/g) ?? []).length);
  });

  it("gives two papers of one author and year different keys", () => {
    const keys = [...asBibtex([source, { ...source, doc_id: "d2" }]).matchAll(/@misc\{([^,]+)/g)].map((m) => m[1]);
    expect(new Set(keys).size).toBe(2);
  });

  it("writes CSL-JSON with names in parts, one item per document", () => {
    const items = JSON.parse(asCslJson([source, { ...source, n: 2 }, { ...source, n: 3, doc_id: "d3", authors: ["Moss, D.", "UNESCO"], year: null, source_url: null }])) as Record<string, unknown>[];
    expect(items).toHaveLength(2);
    expect(items[0]).toEqual({ id: "yao2023react", type: "document", title: source.title, author: [{ family: "Yao", given: "Shunyu" }, { family: "Zhao", given: "Jeffrey" }], issued: { "date-parts": [[2023]] }, URL: source.source_url });
    expect(items[1]?.["author"]).toEqual([{ family: "Moss", given: "D." }, { literal: "UNESCO" }]);
    expect(items[1]).not.toHaveProperty("issued");
  });

  it("writes RIS records that end", () => {
    const lines = asRis([source]).split("\r\n");
    expect(lines.slice(0, 6)).toEqual(["TY  - GEN", `TI  - ${source.title}`, "AU  - Yao, Shunyu", "AU  - Zhao, Jeffrey", "PY  - 2023", "UR  - https://arxiv.org/abs/2210.03629v3"]);
    expect(lines.at(6)).toBe("ER  - ");
  });

  it("copies an answer with its sources", () => {
    const answer = { answer: "It interleaves them [1].", sources: [source] } as unknown as AnswerRecord;
    expect(asMarkdown("What\ndoes it do?", answer)).toBe(`## What does it do?\n\nIt interleaves them [1].\n\n### Sources\n\n- ${attribution(source)}\n`);
  });

  it("keeps a conversation, also a question without an answer", () => {
    const answer = { answer: "It interleaves them [1].", sources: [] } as unknown as AnswerRecord;
    const done = { ...asked("a", "What does it do?", "papers", []), answer };
    const broken = asked("b", "And why?", "papers", []);
    expect(conversationAsMarkdown([done, broken])).toBe("## What does it do?\n\nIt interleaves them [1].\n\n## And why?\n\nNo answer.\n");
  });
});
