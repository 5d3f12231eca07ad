import { ActionMenu } from "@/components/ui/menu";
import { conversationAsMarkdown } from "@/lib/attribution";
import type { Exchange } from "@/lib/exchange";
import { t } from "@/lib/language";
import { saveAs } from "@/lib/save-as";

/** Keep a conversation as a file, or on paper. */
export function SaveConversation({ exchanges }: { exchanges: readonly Exchange[] }) {
  const keep = (content: string, type: string, suffix: string): void => saveAs(new Blob([content], { type }), `conversation.${suffix}`);
  return (
    <ActionMenu
      icon="save"
      label={t("Save conversation")}
      actions={[
        [t("As Markdown, with sources"), () => keep(conversationAsMarkdown(exchanges), "text/markdown", "md")],
        [t("As JSON"), () => keep(JSON.stringify(exchanges.map(({ question, answer }) => ({ question, answer })), null, 2), "application/json", "json")],
        [t("Print"), () => window.print()],
      ]}
    />
  );
}
