import { locale, t } from "@/lib/language";
/**
 * A JSON object as name and value pairs for people: nested objects are flattened one level at a time, lists are joined, names lose their underscores.
 */
export function factsOf(body: Readonly<Record<string, unknown>>, without: readonly string[] = []): [string, string][] {
  return Object.entries(body)
    .filter(([name]) => !without.includes(name))
    .flatMap(([name, value]) => flatten(label(name), value));
}

function flatten(name: string, value: unknown): [string, string][] {
  if (value === null || value === undefined || value === "") return [[name, "–"]];
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== "object")) return [[name, value.length === 0 ? t("none") : value.map(String).join(", ")]];
    return value.flatMap((item: unknown, i) => flatten(`${name} ${i + 1}`, item));
  }
  if (typeof value === "object") return Object.entries(value).flatMap(([inner, one]) => flatten(`${name}: ${label(inner)}`, one));
  if (typeof value === "boolean") return [[name, value ? t("yes") : t("no")]];
  if (typeof value === "number") return [[name, Number.isInteger(value) ? value.toLocaleString(locale()) : String(Number(value.toPrecision(4)))]];
  return [[name, typeof value === "string" ? value : JSON.stringify(value)]];
}

function label(name: string): string {
  return name.replaceAll("_", " ");
}
