import type { AnswerRecord, SourceRecord } from "@/api/types";
import type { Exchange } from "@/lib/exchange";
import { pageWord } from "@/lib/format";
import { t } from "@/lib/language";
import { programLink } from "@/lib/links";

/** One line per source: number, title, authors, year, page, licence, address. */
export function attribution(source: SourceRecord): string {
  const parts = [`[${source.n}] ${source.title}`];
  if (source.authors.length > 0) parts.push(source.authors.join(", "));
  if (source.year !== null) parts.push(String(source.year));
  if (source.page !== null) parts.push(pageWord(source.page));
  if (source.licence !== null) parts.push(source.licence);
  if (source.source_url !== null) parts.push(source.source_url);
  const elsewhere = programLink(source);
  if (elsewhere !== null) parts.push(elsewhere.href);
  return parts.join(". ");
}

/** Question, answer and sources as Markdown that can be pasted elsewhere. */
export function asMarkdown(question: string, answer: AnswerRecord): string {
  const sources = answer.sources.map((source) => `- ${attribution(source)}`);
  const heading = question.replace(/\s+/g, " ").trim();
  return [`## ${heading}`, answer.answer.trim(), ...(sources.length > 0 ? [`### ${t("Sources")}`, sources.join("\n")] : [])].join("\n\n") + "\n";
}

/** A whole conversation as Markdown; what was not answered says so. */
export function conversationAsMarkdown(exchanges: readonly Exchange[]): string {
  return exchanges.map(({ question, answer, draft }) => (answer === null ? `## ${question}\n\n${draft.trim() || t("No answer.")}\n` : asMarkdown(question, answer))).join("\n");
}

/** One BibTeX entry per cited document; arXiv papers carry their eprint id. */
export function asBibtex(sources: readonly SourceRecord[]): string {
  const keys = new Set<string>();
  return documentsOf(sources).map((source) => entry(source, uniqueKey(source, keys))).join("\n");
}

/** One CSL-JSON item per cited document, as Zotero, Pandoc and others import it. */
export function asCslJson(sources: readonly SourceRecord[]): string {
  const keys = new Set<string>();
  const items = documentsOf(sources).map((source) => ({
    id: uniqueKey(source, keys),
    type: "document",
    title: source.title,
    ...(source.authors.length > 0 && { author: source.authors.map(nameParts) }),
    ...(source.year !== null && { issued: { "date-parts": [[source.year]] } }),
    ...(source.source_url !== null && { URL: source.source_url }),
  }));
  return `${JSON.stringify(items, null, 2)}\n`;
}

/** One RIS record per cited document, for EndNote, Mendeley and others. */
export function asRis(sources: readonly SourceRecord[]): string {
  return documentsOf(sources)
    .map((source) => {
      const fields: [string, string | null][] = [["TY", "GEN"], ["TI", source.title], ...source.authors.map((name): [string, string] => ["AU", risName(name)]), ["PY", source.year === null ? null : String(source.year)], ["UR", source.source_url]];
      const lines = fields.flatMap(([tag, value]) => (value === null ? [] : [`${tag}  - ${value.replace(/\s+/g, " ").trim()}`]));
      return `${lines.join("\r\n")}\r\nER  - \r\n`;
    })
    .join("\r\n");
}

function documentsOf(sources: readonly SourceRecord[]): SourceRecord[] {
  const seen = new Map<string, SourceRecord>();
  for (const source of sources) if (!seen.has(source.doc_id)) seen.set(source.doc_id, source);
  return [...seen.values()];
}

function nameParts(name: string): { family: string; given: string } | { literal: string } {
  const [family, given] = name.includes(",") ? name.split(/,\s*(.*)/) : [name.trim().split(/\s+/).at(-1), name.trim().split(/\s+/).slice(0, -1).join(" ")];
  return family && given ? { family, given } : { literal: name.trim() };
}

function risName(name: string): string {
  const parts = nameParts(name);
  return "literal" in parts ? parts.literal : `${parts.family}, ${parts.given}`;
}

function entry(source: SourceRecord, key: string): string {
  const arxiv = /arxiv\.org\/(?:abs|pdf)\/([^?#]+?)(?:\.pdf)?$/.exec(source.source_url ?? "")?.[1];
  const fields: [string, string | null][] = [
    ["title", source.title],
    ["author", source.authors.length > 0 ? source.authors.join(" and ") : null],
    ["year", source.year === null ? null : String(source.year)],
    ["eprint", arxiv ?? null],
    ["archivePrefix", arxiv === undefined ? null : "arXiv"],
    ["url", source.source_url],
    ["note", source.licence === null ? null : `Licence: ${source.licence}`],
  ];
  const lines = fields.flatMap(([name, value]) => (value === null ? [] : [`  ${name} = {${escapeTex(value, name)}}`]));
  return `@misc{${key},\n${lines.join(",\n")}\n}\n`;
}

function uniqueKey(source: SourceRecord, taken: Set<string>): string {
  const family = source.authors[0]?.trim().split(/\s+/).at(-1) ?? "";
  const word = source.title.split(/\s+/).find((w) => w.length > 3) ?? source.title;
  const base = ascii(`${family}${source.year ?? ""}${word}`).toLowerCase() || `doc${source.doc_id}`;
  let key = base;
  for (let i = 0; taken.has(key); i += 1) key = `${base}${String.fromCharCode(97 + (i % 26))}`.concat(i >= 26 ? String(i) : "");
  taken.add(key);
  return key;
}

function ascii(text: string): string {
  return text.normalize("NFKD").replace(/[^A-Za-z0-9]/g, "");
}

function escapeTex(text: string, field: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  if (field === "url" || field === "eprint") return flat.replace(/[{}\\]/g, "");
  return flat.replace(/\\/g, "\\textbackslash ").replace(/[&%$#_]/g, "\\$&").replace(/[{}]/g, "");
}
