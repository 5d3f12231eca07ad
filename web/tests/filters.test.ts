import { describe, expect, it } from "vitest";
import type { DocumentRecord, SavedFilter } from "@/api/types";
import { allows, filterFields, NO_FILTER } from "@/lib/filters";

const document = { doc_id: "d", type: "pdf", year: 1911, authors: ["Ruth Calloway"], tags: ["Sea", "old"], metadata: { rating: 4, due: "2026-03-01", project: "Apollo" } } as unknown as DocumentRecord;
const every = { doc_ids: [], exclude_doc_ids: [], type: [], section: [], tags: [], metadata: [], year_from: null, year_to: null, author: null };

function passes(filter: Partial<typeof NO_FILTER>, saved: Partial<SavedFilter["filters"]> = {}): boolean {
  return allows(document, { ...NO_FILTER, ...filter }, [{ name: "mine", filters: { ...every, ...saved } }]);
}

describe("a filter of documents", () => {
  it("needs one of its tags, whatever their case", () => {
    expect(passes({ tags: ["land", "sea"] })).toBe(true);
    expect(passes({ tags: ["land"] })).toBe(false);
  });

  it("needs every condition on metadata; a range holds its ends and may be open", () => {
    expect(passes({ metadata: ["rating=4..", "project=apollo"] })).toBe(true);
    expect(passes({ metadata: ["rating=5.."] })).toBe(false);
    expect(passes({ metadata: ["rating=10..20"] })).toBe(false);
    expect(passes({ metadata: ["due=2026-01-01..2026-03-01"] })).toBe(true);
    expect(passes({ metadata: ["due=..2026-02-28"] })).toBe(false);
    expect(passes({ metadata: ["nothing=1"] })).toBe(false);
  });

  it("takes what a collection says, but for tags that are chosen", () => {
    expect(passes({ collection: "mine" }, { tags: ["land"] })).toBe(false);
    expect(passes({ collection: "mine", tags: ["sea"] }, { tags: ["land"] })).toBe(true);
    expect(passes({ collection: "mine" }, { year_from: 1912 })).toBe(false);
    expect(passes({ collection: "mine" }, { author: "calloway", type: ["pdf"] })).toBe(true);
    expect(passes({ collection: "mine" }, { doc_ids: ["other"] })).toBe(false);
  });

  it("goes with a request as fields", () => {
    expect(filterFields({ tags: ["sea"], metadata: ["rating=4", "due=2026-01-01.."], collection: "mine" })).toEqual({ tags: ["sea"], metadata: { rating: 4, due: "2026-01-01.." }, collection: "mine" });
  });
});
