import type { Root } from "mdast";
import { visit } from "unist-util-visit";

/**
 * remark plugin: a numeric reference is a citation, never a link.
 *
 * An answer may carry `[1]: https://elsewhere`, which would turn every `[1]` into a link; the definitions go, the marks stay text.
 */
export function plainReferences(): (tree: Root) => void {
  return (tree) => {
    visit(tree, (node, index, parent) => {
      if (parent === undefined || index === undefined) return;
      if (node.type === "definition" && /^\d+$/.test(node.identifier)) {
        parent.children.splice(index, 1);
        return index;
      }
      if ((node.type === "linkReference" || node.type === "imageReference") && /^\d+$/.test(node.identifier)) {
        parent.children.splice(index, 1, { type: "text", value: `[${node.identifier}]` });
        return index + 1;
      }
      return undefined;
    });
  };
}
