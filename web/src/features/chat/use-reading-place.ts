import { useEffect, useRef, type RefObject } from "react";
import { useChat, useChatSession } from "@/hooks/use-chat";
import { useRoute } from "@/hooks/use-route";

/** Pixels from the end within which new text is followed. */
const NEAR_END = 60;

/**
 * Where the conversation is read: at its end while an answer grows, where it was left after a reload, at the answer that the
 * address names.
 */
export function useReadingPlace(): { scroller: RefObject<HTMLDivElement | null>; content: RefObject<HTMLDivElement | null>; onScroll: () => void } {
  const session = useChatSession();
  const { exchanges, opening, conversationId } = useChat();
  const { detail } = useRoute();
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  /** How far one could scroll when that was last looked at. */
  const range = useRef(0);
  const placed = useRef<string | null>(null);
  const last = exchanges.at(-1);
  useEffect(() => {
    follow.current = true;
  }, [last?.id]);
  useEffect(() => {
    const box = scroller.current;
    if (box === null || conversationId === null || opening !== null || placed.current === conversationId) return;
    placed.current = conversationId;
    const left = session.place?.conversation === conversationId ? session.place.top : null;
    const named = detail === null ? null : box.querySelector(`[data-answer="${CSS.escape(detail)}"]`);
    if (left === null && named === null) return;
    if (left !== null) box.scrollTop = left;
    else named?.scrollIntoView({ block: "start" });
    // What the address names stays in sight, also where the conversation is still too short to leave its end.
    follow.current = left !== null && nearEnd(box);
  }, [session, conversationId, opening, detail]);
  // Whatever makes the conversation longer, further questions and fonts too, leaves the end of the newest answer in sight.
  useEffect(() => {
    const box = scroller.current;
    const inside = content.current;
    if (box === null || inside === null || opening !== null) return undefined;
    const observer = new ResizeObserver(() => {
      range.current = rangeOf(box);
      if (follow.current) box.scrollTop = box.scrollHeight;
    });
    observer.observe(inside);
    observer.observe(box);
    return () => observer.disconnect();
  }, [opening]);
  const onScroll = (): void => {
    const box = scroller.current;
    if (box === null || opening !== null) return;
    // A scroll of before may be told after an answer grew or shrank: then nobody scrolled away from its end.
    if (range.current === rangeOf(box)) follow.current = nearEnd(box);
    if (conversationId !== null) session.leave({ conversation: conversationId, top: box.scrollTop });
  };
  return { scroller, content, onScroll };
}

function rangeOf(box: HTMLElement): number {
  return box.scrollHeight - box.clientHeight;
}

function nearEnd(box: HTMLElement): boolean {
  return rangeOf(box) - box.scrollTop < NEAR_END;
}
