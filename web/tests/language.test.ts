import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { bytes, percent } from "@/lib/format";
import { type Language, spoken, t } from "@/lib/language";
import de from "@/languages/de.json";
import en from "@/languages/en.json";
import es from "@/languages/es.json";

type Forms = string | Record<string, string>;
const LANGUAGES: Record<string, Record<string, Forms>> = { de, es };
const SOURCE = path.resolve(import.meta.dirname, "../src");
const WRITTEN = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readFileSync(path.join(SOURCE, name), "utf8"))
  .join("\n");

function forms(text: Forms): string[] {
  return typeof text === "string" ? [text] : Object.values(text);
}

function placeholders(text: string): string[] {
  return (text.match(/\{\w+\}/g) ?? []).sort();
}

function say(language: Language): void {
  spoken.set(() => ({ language, messages: { en, de, es }[language] }));
}

afterEach(() => say("en"));

describe("a language of the page", () => {
  it.each(Object.entries(LANGUAGES))("%s has the messages that the page asks for, and no others", (_, messages) => {
    expect(Object.keys(messages)).toEqual(Object.keys(de));
    expect(Object.keys(messages).filter((message) => !WRITTEN.includes(JSON.stringify(message)))).toEqual([]);
  });

  it.each(Object.entries(LANGUAGES))("%s keeps the values of each message", (_, messages) => {
    const torn = Object.entries(messages).filter(([message, text]) => forms(text).some((form) => placeholders(form).join() !== placeholders(message).join()));
    expect(torn).toEqual([]);
  });

  it.each(Object.entries({ ...LANGUAGES, en: en }))("%s has plural forms where English has them", (_, messages) => {
    expect(Object.entries(messages).filter(([, text]) => typeof text !== "string").map(([message]) => message).sort()).toEqual(Object.keys(en).sort());
  });

  it("forms plurals, numbers and shares", () => {
    expect([t("{n} documents", { n: 1 }), t("{n} documents", { n: 12_345 }), percent(0.126), bytes(1234)]).toEqual(["1 document", "12,345 documents", "13%", "1.2 kB"]);
    say("de");
    expect([t("{n} documents", { n: 1 }), t("{n} documents", { n: 12_345 }), percent(0.126), bytes(1234)]).toEqual(["1 Dokument", "12.345 Dokumente", "13\u00a0%", "1,2 kB"]);
    say("es");
    expect([t("{n} documents", { n: 1 }), t("{n} documents", { n: 12_345 }), t("Delete {title}", { title: "{n}" })]).toEqual(["1 documento", "12.345 documentos", "Borrar {n}"]);
  });
});
