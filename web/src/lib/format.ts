import type { JobRecord, Mode, Scope, SourceRecord, Strategy } from "@/api/types";
import { count, locale, type Message, t } from "@/lib/language";

export { count };

/** A number with so many decimals. */
export function fixed(value: number, decimals: number): string {
  return new Intl.NumberFormat(locale(), { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(value);
}

/** "p. 7". */
export function pageWord(page: number): string {
  return t("p. {page}", { page });
}

/** The libraries by the names that the page gives them. */
export const LIBRARY_NAMES = { papers: "My documents", public: "Public", all: "My documents and Public" } as const satisfies Record<Scope, Message>;

/** The same as a choice. */
export const LIBRARIES: Record<Scope, Message> = { papers: "My documents", public: "Public", all: "All" };

/** The kinds of answer; the set is the contract's, so that a missing or unknown name does not compile. */
export const MODE_NAMES: Record<Mode, Message> = {
  general: "Answer",
  compare: "Comparison",
  methodology: "How it was done",
  datasets: "Data that was used",
  reproduce: "Steps to repeat it",
  summary: "Summary",
};

/** The ways of searching. */
export const STRATEGY_NAMES: Record<Strategy, Message> = {
  baseline: "The question as it stands",
  hyde: "By a drafted answer (HyDE)",
  multi_query: "In several wordings",
  flare: "Again while writing (FLARE)",
};

/** The choices of a set of names, in its order. */
export function optionsOf<Name extends string>(labels: Record<Name, Message>): { value: Name; label: string }[] {
  return (Object.keys(labels) as Name[]).map((value) => ({ value, label: t(labels[value]) }));
}

/** A message of the server's as a sentence: a capital first, a full stop last. */
export function sentence(message: string): string {
  const text = message.trim();
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?:)\]”"]$/.test(text) ? "" : "."}`;
}

/** How far an index is behind, in changes; the server counts to 10,000 and no further. */
export function behind(lag: number): string {
  return lag === 0 ? t("up to date") : t(lag >= 10_000 ? "{n} or more behind" : "{n} behind", { n: lag });
}

/** What jobs count; bytes are written as file managers do. */
const UNITS: Record<string, Message> = {
  articles: "articles",
  chunks: "passages",
  documents: "documents",
  files: "files",
  items: "items",
  pages: "pages",
  pairs: "pairs",
  questions: "questions",
  sentences: "sentences",
};

/** How far a job is: "12 of 40 documents · about 2 min left". */
export function progressWords({ done, total, unit, eta_s }: Pick<JobRecord, "done" | "total" | "unit" | "eta_s">): string {
  const shown = unit === "bytes" ? bytes : count;
  const so = total === null ? shown(done) : t("{done} of {total}", { done: shown(done), total: shown(total) });
  const of = UNITS[unit];
  const left = eta_s === null ? "" : ` · ${t("about {time} left", { time: seconds(eta_s) })}`;
  return unit === "bytes" ? so + left : `${so} ${of === undefined ? unit : t(of)}${left}`;
}

/** Bytes in powers of 1000, as file managers show them. */
export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let rest = value;
  let unit = 0;
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${fixed(rest, unit === 0 || rest >= 100 ? 0 : 1)} ${units[unit] ?? ""}`;
}

/** Milliseconds as people read them: 3.2 ms, 140 ms, 2.1 s. */
export function milliseconds(value: number): string {
  if (value < 10) return `${fixed(value, 1)} ms`;
  if (value < 1000) return `${fixed(value, 0)} ms`;
  return seconds(value / 1000);
}

/** Seconds as 4.2 s, 3 min, 2 h 5 min, 3 d 4 h. */
export function seconds(value: number): string {
  if (value < 60) return `${fixed(value, value < 10 ? 1 : 0)} s`;
  const minutes = Math.round(value / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A share in [0, 1] as a whole per cent; never 100 before it is complete. */
export function percent(share: number): string {
  return new Intl.NumberFormat(locale(), { style: "percent" }).format(share < 1 ? Math.min(0.99, share) : share);
}

/** "just now", "5 min ago", "3 h ago", then the date. `iso` is UTC. */
export function ago(iso: string, now: number = Date.now()): string {
  const then = Date.parse(iso);
  if (Number.isNaN(then)) return iso;
  const passed = (now - then) / 1000;
  if (passed < 45) return t("just now");
  if (passed < 3600) return relative(-Math.max(1, Math.round(passed / 60)), "minute");
  if (passed < 86_400) return relative(-Math.round(passed / 3600), "hour");
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }).format(then);
}

function relative(value: number, unit: "minute" | "hour"): string {
  return new Intl.RelativeTimeFormat(locale(), { numeric: "always" }).format(value, unit);
}

/** "Yao et al., 2023", "Yao and Zhao, 2023", or what there is of it. */
export function byline(authors: readonly string[], year: number | null): string {
  const family = authors.map((name) => asName(name.trim().split(/\s+/).at(-1) ?? name));
  const [first, second] = family;
  let names = first ?? "";
  if (family.length === 2 && second !== undefined) names = t("{first} and {second}", { first: names, second });
  if (family.length > 2) names = `${names} et al.`;
  return [names, year === null ? "" : String(year)].filter(Boolean).join(", ");
}

/** "SANH" is how some papers print Sanh; two letters may be initials. */
function asName(name: string): string {
  return name.length > 3 && name === name.toUpperCase() ? name.charAt(0) + name.slice(1).toLowerCase() : name;
}

/** Who answers, in words: a model by its name, and no model as what it does. */
export function answeredBy(generator: string): string {
  return generator.startsWith("extractive") ? t("Quotes, no model") : generator === "none" ? "" : modelName(generator);
}

/** Model names without provider and registry folder: "all-MiniLM-L6-v2", "llama3.2:latest". */
export function modelName(model: string): string {
  const name = model.split("/").at(-1) ?? model;
  return name.replace(/^(?:ollama|minilm|openai|groq|google|mistral|anthropic|openai_compatible):/, "");
}

/** Kinds of section that the server knows. */
const SECTIONS: Record<string, Message> = {
  abstract: "abstract",
  acknowledgements: "acknowledgements",
  appendix: "appendix",
  conclusion: "conclusion",
  contents: "contents",
  discussion: "discussion",
  experiments: "experiments",
  introduction: "introduction",
  limitations: "limitations",
  methodology: "methods",
  references: "references",
  "related work": "related work",
  results: "results",
};

/** Where a passage is from: "sample · Yao et al., 2023 · p. 7 · results · My documents". */
export function placeWords({ sample, authors, year, page, section, library }: Pick<SourceRecord, "sample" | "authors" | "year" | "page" | "section" | "library">): string {
  const kind = SECTIONS[section];
  return [sample ? t("sample") : "", byline(authors, year), page === null ? "" : pageWord(page), section === "body" ? "" : kind === undefined ? section : t(kind), t(LIBRARY_NAMES[library])].filter(Boolean).join(" · ");
}
