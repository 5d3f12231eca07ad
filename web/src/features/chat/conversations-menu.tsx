import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import { conversations } from "@/api/queries";
import type { ConversationSummary } from "@/api/types";
import { IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Input } from "@/components/ui/field";
import { Popover } from "@/components/ui/menu";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { goTo, hrefOf } from "@/hooks/use-route";
import { ago } from "@/lib/format";

/** Earlier conversations: open, rename, forget. */
export function ConversationsMenu() {
  return (
    <Popover icon="history" label="Conversations" align="left">
      {(close) => <ConversationList onOpened={close} />}
    </Popover>
  );
}

function ConversationList({ onOpened }: { onOpened: () => void }) {
  const list = useQuery(conversations);
  const { conversationId } = useChat();
  if (list.isPending) return <Skeleton lines={3} />;
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.conversations.length === 0) return <p className="px-2 py-3 text-sm text-muted">No conversations yet. Ask something.</p>;
  return (
    <ul className="max-h-80 overflow-y-auto">
      {list.data.conversations.map((one) => (
        <ConversationRow key={one.id} conversation={one} current={one.id === conversationId} onOpened={onOpened} />
      ))}
    </ul>
  );
}

function ConversationRow({ conversation, current, onOpened }: { conversation: ConversationSummary; current: boolean; onOpened: () => void }) {
  const client = useQueryClient();
  const [title, setTitle] = useState<string | null>(null);
  const { reset } = useChat();
  const path = `api/v1/conversations/${encodeURIComponent(conversation.id)}`;
  const onSettled = (): void => {
    void client.invalidateQueries({ queryKey: ["conversations"] });
  };
  const rename = useMutation({ mutationFn: (name: string) => call("PATCH", path, { title: name }), onSettled });
  const forget = useMutation({
    mutationFn: () => call("DELETE", path),
    onSuccess: () => {
      if (!current) return;
      reset();
      goTo("ask");
    },
    onSettled,
  });
  const shown = conversation.title === "" ? "Untitled" : conversation.title;
  if (title !== null) {
    return (
      <li className="p-1">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            rename.mutate(title);
            setTitle(null);
          }}
        >
          <Input label="Title of the conversation" value={title} autoFocus onChange={(event) => setTitle(event.target.value)} onBlur={() => setTitle(null)} />
        </form>
      </li>
    );
  }
  return (
    <li className={cx("group flex items-center rounded-md hover:bg-sunken", current && "bg-accent-soft")}>
      <a href={hrefOf("ask", conversation.id)} onClick={onOpened} className="min-w-0 flex-1 px-2 py-1.5 text-left">
        <span className="block truncate text-sm">{shown}</span>
        <span className="block text-2xs text-muted">{ago(conversation.updated_at)}</span>
      </a>
      <button type="button" onClick={() => setTitle(conversation.title)} className="rounded-sm px-1 text-2xs text-muted hover:text-ink">
        Rename
      </button>
      <IconButton icon="trash" label={`Forget ${shown}`} onClick={() => forget.mutate()} className="size-6" />
    </li>
  );
}
