import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import type { SourceRecord } from "@/api/types";
import { Guarded } from "@/components/ui/guarded";
import { Markdown } from "@/components/markdown";
import { SourceCard } from "@/features/sources/source-card";
import { parseHash } from "@/hooks/use-route";
import { linkOf, webLink } from "@/lib/links";

const BAD = ["https://[bad", "https://", "http://", "https://[", "https://a b/", "https://%", "https://x:99999/", "HTTPS://[::1", "javascript:alert(1)", "//host/x", "ftp://host/", ""];

function source(source_url: string | null): SourceRecord {
  return {
    n: 1, library: "public", doc_id: "0".repeat(16), revision: 1, title: "Condor", authors: [], year: null, type: "text", page: null,
    section: "body", start: 0, end: 4, text: "text", preview: "text", score: 1, band: null, source_url, licence: "CC BY 4.0",
    signals: { dense: null, lexical: null, fusion: null, overlap: null, adjacency: null, rerank: null },
  } as unknown as SourceRecord;
}

function shown(node: ReactNode): string {
  return renderToStaticMarkup(<QueryClientProvider client={new QueryClient()}>{node}</QueryClientProvider>);
}

describe("links of documents and answers", () => {
  it("opens a source in Zotero where it came from there", () => {
    const address = "zotero://open-pdf/groups/4711/items/ABCD2345?page=4";
    const card = (zotero_url: string | null) => shown(<SourceCard scores={false} source={{ ...source(null), zotero_url }} focus={null} onOpen={() => undefined} />);
    expect(card(address)).toContain(`<a href="${address}"`);
    expect(card(null)).not.toContain("<a ");
    expect(card("javascript:alert(1)")).not.toContain("<a ");
  });

  it("opens a note in Obsidian where it came from a vault", () => {
    const address = "obsidian://open?vault=My%20Vault&file=Bees%2FHoney%23In%20May";
    const card = (obsidian_url: string) => shown(<SourceCard scores={false} source={{ ...source(null), obsidian_url }} focus={null} onOpen={() => undefined} />);
    expect(card(address)).toContain(`<a href="${address.replace("&", "&amp;")}"`);
    expect(card("obsidian://new?vault=a&file=b")).not.toContain("<a ");
  });

  it.each(BAD)("%j is no link", (url) => {
    expect(webLink(url)).toBeNull();
    expect(shown(<SourceCard scores={false} source={source(url)} focus={null} onOpen={() => undefined} />)).not.toContain("<a ");
    expect(shown(<Markdown text={`See [this](<${url}>) and ${url} now.`} sources={new Set()} renderCitation={() => null} />)).toContain("now.");
  });

  it("shows where a good one goes", () => {
    expect(webLink("https://example.org/x?y=1")).toEqual({ href: "https://example.org/x?y=1", host: "example.org" });
    expect(shown(<SourceCard scores={false} source={source("https://example.org/x")} focus={null} onOpen={() => undefined} />)).toContain(">example.org</a>");
    expect(webLink(null)).toBeNull();
  });
});

describe("an address of a view", () => {
  it.each(["%", "%zz", "a%b"])("%j is taken as it is", (text) => {
    expect(parseHash(`#/inspect/${text}`)).toEqual({ page: "inspect", argument: text, detail: null, view: "" });
  });
});

describe("an error in what is shown", () => {
  it("stays inside its guard, which says what cannot be shown", () => {
    expect(Guarded.getDerivedStateFromError(new Error("no host"))).toEqual({ error: new Error("no host") });
    expect(Guarded.getDerivedStateFromError("no host").error).toBeInstanceOf(Error);
    const guard = new Guarded({ what: "Source 1", children: "fine" });
    expect(guard.render()).toBe("fine");
    guard.state = { error: new Error("no host") };
    const html = renderToStaticMarkup(guard.render());
    expect(html).toContain("Source 1 cannot be shown.");
    expect(html).toContain("No host.");
    expect(html).toContain("Retry");
  });
});

describe("what a typed text asks to fetch", () => {
  it.each([
    ["2210.03629", { kind: "arxiv", id: "2210.03629" }],
    ["arXiv:2210.03629v2", { kind: "arxiv", id: "2210.03629v2" }],
    ["https://arxiv.org/pdf/hep-th/9901001.pdf", { kind: "arxiv", id: "hep-th/9901001" }],
    ["https://example.org/tides.html?y=1", { kind: "web", url: "https://example.org/tides.html?y=1" }],
    [" example.org/tides ", { kind: "web", url: "https://example.org/tides" }],
  ])("%j", (text, link) => {
    expect(linkOf(text)).toEqual(link);
  });

  it.each(["", "tides", "two words.org", "ftp://example.org/x", "javascript:alert(1)", "me@example.org", "221.3"])("%j asks for nothing", (text) => {
    expect(linkOf(text)).toBeNull();
  });
});
