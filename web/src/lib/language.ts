import { createElement, Fragment, type ReactNode } from "react";
import en from "@/languages/en.json";
import { Store } from "@/lib/store";

/** The languages of the page, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español" } as const;
export type Language = keyof typeof LANGUAGES;

/** A text of the page: its English words, after which a bar may tell two meanings apart. */
export type Message = keyof typeof import("@/languages/de.json");
/** One text, or one for each plural form that its `{n}` can ask for. */
type Forms = string | ({ other: string } & Partial<Record<Intl.LDMLPluralRule, string>>);

/** A language is one file, fetched when it is chosen; one that lacks a message does not compile. English has plural forms alone. */
const FILES: Record<Exclude<Language, "en">, () => Promise<{ default: Record<Message, Forms> }>> = {
  de: () => import("@/languages/de.json"),
  es: () => import("@/languages/es.json"),
};

interface Spoken {
  language: Language;
  messages: Partial<Record<Message, Forms>>;
}

export const spoken = new Store<Spoken>({ language: "en", messages: en });

/** Show the page in a language from now on; null: in the browser's first one that the page has. */
export async function speak(wanted: Language | null): Promise<void> {
  const language = wanted ?? browserLanguage();
  const messages = language === "en" ? en : (await FILES[language]()).default;
  document.documentElement.lang = language;
  spoken.set(() => ({ language, messages }));
}

export function browserLanguage(): Language {
  const known = Object.keys(LANGUAGES) as Language[];
  return navigator.languages.map((tag) => known.find((one) => one === tag.split("-")[0])).find((one) => one !== undefined) ?? "en";
}

/** The locale of numbers and dates. */
export function locale(): string {
  return spoken.get().language;
}

/** What a locale needs once and long lists need often. */
function kept<T>(make: (locale: string) => T): () => T {
  const made = new Map<string, T>();
  return () => {
    const one = made.get(locale()) ?? make(locale());
    made.set(locale(), one);
    return one;
  };
}

const whole = kept((tag) => new Intl.NumberFormat(tag, { maximumFractionDigits: 0 }));
const compact = kept((tag) => new Intl.NumberFormat(tag, { notation: "compact", maximumFractionDigits: 1 }));
const plurals = kept((tag) => new Intl.PluralRules(tag));

/** 12,345 below a hundred thousand, 1.2M above. */
export function count(value: number): string {
  return (Math.abs(value) < 100_000 ? whole() : compact()).format(value);
}

/** A message in the page's language, with its values; `n` chooses the plural form. */
export function t(message: Message, values: Readonly<Record<string, string | number>> = {}): string {
  return wording(message, values["n"]).replace(/\{(\w+)\}/g, (_, name: string) => shown(values[name] ?? ""));
}

/** The same where a value is more than text. */
export function tx(message: Message, values: Readonly<Record<string, ReactNode>>): ReactNode {
  const parts = wording(message, values["n"]).split(/\{(\w+)\}/);
  return createElement(Fragment, null, ...parts.map((part, i) => (i % 2 === 0 ? part : typeof values[part] === "number" ? count(values[part]) : values[part])));
}

function wording(message: Message, n: unknown): string {
  const found: Forms = spoken.get().messages[message] ?? message.replace(/\|.*$/, "");
  if (typeof found === "string") return found;
  return (typeof n === "number" ? found[plurals().select(n)] : undefined) ?? found.other;
}

function shown(value: string | number): string {
  return typeof value === "number" ? count(value) : value;
}
