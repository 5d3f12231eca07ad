import { Children, cloneElement, isValidElement, type ReactElement, type ReactNode, type TdHTMLAttributes } from "react";
import { cx } from "./cx";

type Labelled = TdHTMLAttributes<HTMLTableCellElement> & { "data-label"?: string };

const STACKED =
  "max-sm:[&_thead]:sr-only max-sm:[&_tr]:block max-sm:[&_tr]:border-b max-sm:[&_tr]:border-line max-sm:[&_tr]:py-2 max-sm:[&_td]:flex max-sm:[&_td]:items-center max-sm:[&_td]:justify-between max-sm:[&_td]:gap-4 max-sm:[&_td]:border-b-0 max-sm:[&_td]:py-1 max-sm:[&_td]:pr-0 max-sm:[&_td]:text-right max-sm:[&_td]:before:shrink-0 max-sm:[&_td]:before:text-left max-sm:[&_td]:before:text-xs max-sm:[&_td]:before:font-semibold max-sm:[&_td]:before:text-muted max-sm:[&_td]:before:content-[attr(data-label)]";

interface Props {
  caption: string;
  head: readonly ReactNode[];
  /** On a narrow screen each row becomes a list of its cells, each next to the head of its column, instead of scrolling sideways. */
  stacked?: boolean;
  children: ReactNode;
}

/** A dense table that scrolls sideways by itself on a narrow screen. */
export function Table({ caption, head, stacked = false, children }: Props) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={caption}>
      <table className={cx("w-full border-collapse text-left text-sm", stacked && STACKED)}>
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th key={i} scope="col" className="border-b border-line-strong py-1.5 pr-4 text-xs font-semibold whitespace-nowrap text-muted">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="[&_td]:border-b [&_td]:border-line [&_td]:py-1.5 [&_td]:pr-4 [&_td]:align-middle [&_td]:tabular-nums">
          {stacked ? Children.map(children, (row) => labelled(row, head)) : children}
        </tbody>
      </table>
    </div>
  );
}

/** Give each cell of a row the head of its column. */
function labelled(row: ReactNode, head: readonly ReactNode[]): ReactNode {
  if (!isValidElement<{ children: ReactNode }>(row)) return row;
  const cells = Children.toArray(row.props.children).map((cell, i) => {
    const label = head[i];
    return isValidElement(cell) && typeof label === "string" ? cloneElement(cell as ReactElement<Labelled>, { "data-label": label }) : cell;
  });
  return cloneElement(row, undefined, ...cells);
}
