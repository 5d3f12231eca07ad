import { useEffect } from "react";
import { useChat } from "@/hooks/use-chat";
import { nameHere, useRoute } from "@/hooks/use-route";

/** Keep address and conversation in step: a conversation gets an address, and an address opens what it names. */
export function useConversationAddress(): void {
  const { page, argument } = useRoute();
  const { conversationId, opening, open, reset } = useChat();
  useEffect(() => {
    if (page !== "ask" || argument === (opening?.id ?? conversationId)) return;
    if (argument === null) reset();
    else void open(argument);
    // Only a new address opens anything; the conversation itself moves with every question.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [page, argument]);
  useEffect(() => {
    // The first question is a step from the start page, to which Back returns.
    if (page === "ask" && conversationId !== null && conversationId !== argument) nameHere(argument === null ? "push" : "replace", "ask", conversationId);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [conversationId]);
}
