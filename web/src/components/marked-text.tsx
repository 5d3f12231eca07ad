import { useEffect, useRef } from "react";
import { splitAround } from "@/lib/codepoints";
import { dense } from "@/lib/passage";

interface Props {
  text: string;
  /** Where `text` begins in its document, in code points. */
  offset: number;
  /** The span of the document to highlight; empty highlights nothing. */
  start: number;
  end: number;
  /** Bring the highlight into view when it changes. */
  scroll?: boolean;
  /** Without blank lines, as on a card. */
  dense?: boolean;
}

/** Text with one span highlighted by its document offsets. */
export function MarkedText({ text, offset, start, end, scroll = false, dense: isDense = false }: Props) {
  const mark = useRef<HTMLElement>(null);
  const shown = splitAround(text, Math.max(0, start - offset), Math.max(0, end - offset));
  const [before, inside, after] = isDense ? shown.map(dense) : shown;
  useEffect(() => {
    if (scroll) mark.current?.scrollIntoView({ block: "center" });
  }, [scroll, start, end, inside]);
  if (inside === "") return <>{isDense ? dense(text) : text}</>;
  return (
    <>
      {before}
      <mark ref={mark} data-highlight="">
        {inside}
      </mark>
      {after}
    </>
  );
}
