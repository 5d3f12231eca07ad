import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import { conversations } from "@/api/queries";
import type { ConversationSummary } from "@/api/types";
import { UndoBanners } from "@/components/ui/banner";
import { IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Input } from "@/components/ui/field";
import { Popover } from "@/components/ui/menu";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { GRACE_S, useDeletion } from "@/hooks/use-deletion";
import { goTo, hrefOf } from "@/hooks/use-route";
import { ago } from "@/lib/format";

/** Earlier conversations: open, rename, delete and bring back. */
export function ConversationsMenu() {
  const client = useQueryClient();
  const { conversationId, reset } = useChat();
  // Here, not in the list: the way back stays when the panel was closed.
  const deletion = useDeletion<ConversationSummary>({
    remove: (one) => call("DELETE", pathOf(one), undefined, { grace_s: GRACE_S }),
    restore: (one) => call("POST", `${pathOf(one)}/restore`),
    onRemoved: (one) => {
      if (one.id !== conversationId) return;
      reset();
      goTo("ask");
    },
    onRestored: (one) => goTo("ask", one.id),
    refresh: () => void client.invalidateQueries({ queryKey: ["conversations"] }),
  });
  return (
    <Popover icon="history" label="Conversations" align="left">
      {(close) => (
        <>
          <UndoBanners title={deletion.undoable === null ? null : titleOf(deletion.undoable)} error={deletion.error} onUndo={deletion.undo} onDismiss={deletion.dismiss} />
          <ConversationList onOpened={close} onDelete={deletion.remove} />
        </>
      )}
    </Popover>
  );
}

function pathOf({ id }: ConversationSummary): string {
  return `api/v1/conversations/${encodeURIComponent(id)}`;
}

function titleOf({ title }: ConversationSummary): string {
  return title === "" ? "Untitled" : title;
}

function ConversationList({ onOpened, onDelete }: { onOpened: () => void; onDelete: (one: ConversationSummary) => void }) {
  const list = useQuery(conversations);
  const { conversationId } = useChat();
  if (list.isPending) return <Skeleton lines={3} />;
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.conversations.length === 0) return <p className="px-2 py-3 text-sm text-muted">No conversations yet. Ask something.</p>;
  return (
    <ul className="max-h-80 overflow-y-auto">
      {list.data.conversations.map((one) => (
        <ConversationRow key={one.id} conversation={one} current={one.id === conversationId} onOpened={onOpened} onDelete={() => onDelete(one)} />
      ))}
    </ul>
  );
}

interface RowProps {
  conversation: ConversationSummary;
  current: boolean;
  onOpened: () => void;
  onDelete: () => void;
}

function ConversationRow({ conversation, current, onOpened, onDelete }: RowProps) {
  const client = useQueryClient();
  const [title, setTitle] = useState<string | null>(null);
  const rename = useMutation({
    mutationFn: (name: string) => call("PATCH", pathOf(conversation), { title: name }),
    onSettled: () => void client.invalidateQueries({ queryKey: ["conversations"] }),
  });
  const shown = titleOf(conversation);
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
      <IconButton icon="trash" label={`Delete ${shown}`} onClick={onDelete} className="size-6" />
    </li>
  );
}
