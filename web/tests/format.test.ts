import { describe, expect, it } from "vitest";
import { ago, answeredBy, behind, byline, bytes, count, milliseconds, modelName, percent, seconds, sentence } from "@/lib/format";

describe("format", () => {
  it("makes a sentence of what the server says", () => {
    expect([sentence("no passage matches; widen the filters"), sentence("Done."), sentence("Why?")]).toEqual(["No passage matches; widen the filters.", "Done.", "Why?"]);
  });
  it("says who answers", () => {
    expect([answeredBy("extractive"), answeredBy("ollama:llama3.2:3b"), answeredBy("none")]).toEqual(["Quotes, no model", "llama3.2:3b", ""]);
  });
  it("does not shout a family name", () => {
    expect([byline(["Victor SANH", "A B", "C D"], 2019), byline(["Yi WU"], null)]).toEqual(["Sanh et al., 2019", "WU"]);
  });
  it("counts", () => {
    expect([count(0), count(9999), count(1_234_567)]).toEqual(["0", "9,999", "1.2M"]);
  });
  it("says how far an index is behind", () => {
    expect([behind(0), behind(1), behind(9999), behind(10_000)]).toEqual(["up to date", "1 behind", "9,999 behind", "10,000 or more behind"]);
  });
  it("sizes and times", () => {
    expect([bytes(0), bytes(999), bytes(1500), bytes(2.5e9)]).toEqual(["0 B", "999 B", "1.5 kB", "2.5 GB"]);
    expect([milliseconds(1.23), milliseconds(140), milliseconds(2100), seconds(59), seconds(600), seconds(7500), seconds(300_000)]).toEqual(["1.2 ms", "140 ms", "2.1 s", "59 s", "10 min", "2 h 5 min", "3 d 11 h"]);
  });
  it("never calls something complete that is not", () => {
    expect([percent(0), percent(0.9999), percent(1)]).toEqual(["0%", "99%", "100%"]);
  });
  it("names authors briefly", () => {
    expect([byline([], null), byline(["A B"], 2020), byline(["A B", "C D"], null), byline(["A B", "C D", "E F"], 2021)]).toEqual(["", "B, 2020", "B and D", "B et al., 2021"]);
  });
  it("tells the age of things", () => {
    const now = Date.parse("2026-01-02T12:00:00Z");
    expect([ago("2026-01-02T11:59:50Z", now), ago("2026-01-02T11:30:00Z", now), ago("2026-01-02T09:00:00Z", now), ago("2025-12-01T00:00:00Z", now), ago("?", now)]).toEqual(["just now", "30 minutes ago", "3 hours ago", "Dec 1, 2025", "?"]);
  });
  it("drops what precedes a model's name", () => {
    expect([modelName("ollama:llama3.2:3b"), modelName("sentence-transformers/all-MiniLM-L6-v2"), modelName("extractive")]).toEqual(["llama3.2:3b", "all-MiniLM-L6-v2", "extractive"]);
  });
});
