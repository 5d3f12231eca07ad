import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { call } from "@/api/http";
import { conversations } from "@/api/queries";
import type { ConversationSummary } from "@/api/types";
import { UndoBanners } from "@/components/ui/banner";
import { Button, IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { RenameForm, SearchInput } from "@/components/ui/field";
import { Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { GRACE_S, useDeletion } from "@/hooks/use-deletion";
import { usePins } from "@/hooks/use-pins";
import { goTo, hrefOf } from "@/hooks/use-route";
import { useWorkspace } from "@/hooks/use-workspace";
import { ago } from "@/lib/format";
import { t } from "@/lib/language";

/** Earlier conversations: find, open, pin, rename, delete and bring back. */
export function ConversationsPane() {
  const client = useQueryClient();
  const { conversationId, reset } = useChat();
  const { showPane } = useWorkspace();
  const { pins, isPinned } = usePins();
  const [query, setQuery] = useState("");
  const list = useQuery(conversations);
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
  const wanted = query.trim().toLowerCase();
  const found = (list.data?.conversations ?? []).filter((one) => titleOf(one).toLowerCase().includes(wanted));
  const known = new Set(list.data?.conversations.map((one) => one.id));
  const answers = pins.filter((pin) => pin.answer !== null && known.has(pin.conversation) && pin.title.toLowerCase().includes(wanted));
  const pinned = found.filter((one) => isPinned({ conversation: one.id, answer: null }));
  const others = found.filter((one) => !pinned.includes(one));
  return (
    <section aria-label={t("Conversations")} className="flex h-full min-h-0 flex-col border-r border-line bg-paper">
      <div className="flex flex-col gap-2 border-b border-line p-3">
        <Button
          icon="plus"
          onClick={() => {
            reset();
            goTo("ask");
            showPane("chat");
          }}
        >
          {t("New conversation")}
        </Button>
        <SearchInput label={t("Find a conversation")} placeholder={t("Find a conversation")} value={query} onValue={setQuery} />
      </div>
      <UndoBanners title={deletion.undoable === null ? null : titleOf(deletion.undoable)} error={deletion.error} onUndo={deletion.undo} onDismiss={deletion.dismiss} />
      <div className="min-h-0 flex-1 overflow-y-auto p-1.5" tabIndex={0} role="region" aria-label={t("List of conversations")}>
        {list.isPending && <Skeleton lines={4} />}
        {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
        {list.isSuccess && found.length === 0 && answers.length === 0 && (
          <p className="px-2 py-3 text-sm text-muted">{wanted === "" ? t("No conversations yet. Ask something.") : t("No conversation has these words in its title.")}</p>
        )}
        {answers.length > 0 && (
          <Group title={t("Pinned answers")}>
            {answers.map((pin) => (
              <PinnedAnswer key={pin.answer} {...pin} onOpened={() => showPane("chat")} />
            ))}
          </Group>
        )}
        {pinned.length > 0 && (
          <Group title={t("Pinned")}>
            {pinned.map((one) => (
              <ConversationRow key={one.id} conversation={one} current={one.id === conversationId} onOpened={() => showPane("chat")} onDelete={() => deletion.remove(one)} />
            ))}
          </Group>
        )}
        {others.length > 0 && (
          <Group title={pinned.length + answers.length > 0 ? t("Earlier") : null}>
            {others.map((one) => (
              <ConversationRow key={one.id} conversation={one} current={one.id === conversationId} onOpened={() => showPane("chat")} onDelete={() => deletion.remove(one)} />
            ))}
          </Group>
        )}
      </div>
    </section>
  );
}

function Group({ title, children }: { title: string | null; children: ReactNode }) {
  return (
    <>
      {title !== null && <h3 className="px-2 pt-2 pb-1 text-xs font-semibold text-muted">{title}</h3>}
      <ul>{children}</ul>
    </>
  );
}

function pathOf({ id }: ConversationSummary): string {
  return `api/v1/conversations/${encodeURIComponent(id)}`;
}

function titleOf({ title }: ConversationSummary): string {
  return title === "" ? t("Untitled") : title;
}

function PinnedAnswer({ conversation, answer, title, onOpened }: { conversation: string; answer: string | null; title: string; onOpened: () => void }) {
  const { toggle } = usePins();
  return (
    <li className="flex items-start rounded-md hover:bg-sunken">
      <a href={hrefOf("ask", conversation, answer)} onClick={onOpened} className="line-clamp-2 min-w-0 flex-1 px-2 py-1.5 text-sm">
        {title}
      </a>
      <IconButton icon="pin" label={t("Unpin {title}", { title })} pressed onClick={() => toggle({ conversation, answer, title })} className="m-0.5" />
    </li>
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
  const { isPinned, toggle } = usePins();
  const [renaming, setRenaming] = useState(false);
  const rename = useMutation({
    mutationFn: (name: string) => call("PATCH", pathOf(conversation), { title: name }),
    onSettled: () => void client.invalidateQueries({ queryKey: ["conversations"] }),
  });
  const shown = titleOf(conversation);
  const pin = { conversation: conversation.id, answer: null };
  const pinned = isPinned(pin);
  if (renaming) {
    return (
      <li className="p-1">
        <RenameForm label={t("Title of the conversation")} value={conversation.title} onRename={(name) => rename.mutate(name)} onClose={() => setRenaming(false)} />
      </li>
    );
  }
  return (
    <li className={cx("group relative rounded-md hover:bg-sunken", current && "bg-accent-soft")}>
      <a href={hrefOf("ask", conversation.id)} aria-current={current ? "true" : undefined} onClick={onOpened} title={shown} className="block px-2 py-1.5 pointer-coarse:pr-28">
        <span className="line-clamp-2 text-sm [overflow-wrap:anywhere]">{shown}</span>
        <span className="block text-2xs text-muted">{ago(conversation.updated_at)}</span>
      </a>
      <div className="absolute top-0.5 right-0.5 flex rounded-md bg-sunken opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:bg-transparent pointer-coarse:opacity-100">
        <IconButton icon="pin" label={pinned ? t("Unpin {title}", { title: shown }) : t("Pin {title}", { title: shown })} pressed={pinned} onClick={() => toggle({ ...pin, title: shown })} />
        <IconButton icon="edit" label={t("Rename {title}", { title: shown })} onClick={() => setRenaming(true)} />
        <IconButton icon="trash" label={t("Delete {title}", { title: shown })} onClick={onDelete} />
      </div>
    </li>
  );
}
