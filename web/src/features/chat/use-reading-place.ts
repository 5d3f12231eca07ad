import { useEffect, useRef, type RefObject } from "react";
import { useChat, useChatSession } from "@/hooks/use-chat";
import { useRoute } from "@/hooks/use-route";

/** Pixels from the end within which new text is followed. */
const NEAR_END = 60;

/**
 * Where the conversation is read: at its end while an answer grows, where it was left after a reload, at the answer that the
 * address names.
 */
export function useReadingPlace(): { scroller: RefObject<HTMLDivElement | null>; onScroll: () => void } {
  const session = useChatSession();
  const { exchanges, opening, conversationId } = useChat();
  const { detail } = useRoute();
  const scroller = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
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
    follow.current = nearEnd(box);
  }, [session, conversationId, opening, detail]);
  useEffect(() => {
    const box = scroller.current;
    if (box !== null && follow.current && opening === null) box.scrollTop = box.scrollHeight;
  }, [last?.id, last?.quote, last?.reading, last?.draft, last?.state, opening]);
  const onScroll = (): void => {
    const box = scroller.current;
    if (box === null || opening !== null) return;
    follow.current = nearEnd(box);
    if (conversationId !== null) session.leave({ conversation: conversationId, top: box.scrollTop });
  };
  return { scroller, onScroll };
}

function nearEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
}
