import type { Root } from "mdast";
import rehypeHighlight from "rehype-highlight";
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";
import { visit } from "unist-util-visit";

/** What makes `$x$` maths and not two prices: a formula's sign, or one letter alone. */
const FORMULA = /[\\^_={}<>]|^[a-zA-Z]'?$/;

/** remark plugin, after remark-math: amounts of money between two dollar signs are text again. */
function pricesAreText() {
  return (tree: Root, { value }: { value: unknown }): void => {
    visit(tree, "inlineMath", (node, index, parent) => {
      const { start, end } = node.position ?? {};
      if (parent === undefined || index === undefined || start?.offset === undefined || end?.offset === undefined) return;
      const source = String(value).slice(start.offset, end.offset);
      const next = String(value).charAt(end.offset);
      if (source.startsWith("$$") || (FORMULA.test(node.value) && !/^\$\s|\s\$$/.test(source) && !/\d/.test(next))) return;
      parent.children.splice(index, 1, { type: "text", value: source, position: node.position });
    });
  };
}

/** Plugins for maths and coloured code, fetched with the first answer that has either. */
export const richPlugins = {
  remark: [remarkMath, pricesAreText],
  code: [[rehypeHighlight, { plainText: ["math"] }] as [typeof rehypeHighlight, object]],
  // MathML is what browsers draw themselves: no fonts to fetch, and no inline style, which the content security policy refuses.
  maths: [[rehypeKatex, { output: "mathml", throwOnError: false, strict: "ignore", maxSize: 40 }] as [typeof rehypeKatex, object]],
};
