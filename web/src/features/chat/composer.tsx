import type { KeyboardEvent } from "react";
import { Button } from "@/components/ui/button";
import { Icon } from "@/components/ui/icon";
import { useChat } from "@/hooks/use-chat";
import { useWorkspace } from "@/hooks/use-workspace";
import { filterWords, narrows, NO_FILTER } from "@/lib/filters";
import { LONGEST } from "@/lib/exchange";
import { LIBRARY_NAMES } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { ChatControls } from "./chat-controls";


/** The question box with its scope above and its controls below. */
export function Composer() {
  const { ask, stop, busy, typed: text, setTyped: setText } = useChat();
  const { library, scope, scopeTo, filter, narrowTo, aside, takeAllIn } = useWorkspace();
  const limits = [scope.length === 0 ? "" : scope.length === 1 ? scope[0]?.title : t("{n} documents", { n: scope.length }), filterWords(filter)].filter(Boolean);
  const submit = (): void => {
    const question = text.trim();
    if (question === "") return;
    ask(question);
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="rounded-lg border border-line-strong bg-surface shadow-[0_1px_6px_rgb(0_0_0/0.06)] focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div className="flex min-w-0 items-center gap-1.5 px-3 pt-2 text-xs text-muted">
        <span className="truncate" data-testid="scope">
          {limits.length === 0
            ? t("Asking {library}", { library: t(LIBRARY_NAMES[library]) })
            : tx("Asking {library}, only {what}", { library: t(LIBRARY_NAMES[library]), what: <strong className="font-semibold text-accent">{limits.join(", ")}</strong> })}
          {aside.length > 0 && <strong className="font-semibold text-accent">, {t("without {n} documents", { n: aside.length })}</strong>}
        </span>
        {(scope.length > 0 || narrows(filter) || aside.length > 0) && (
          <button
            type="button"
            aria-label={t("Ask the whole library")}
            title={t("Ask the whole library")}
            onClick={() => {
              scopeTo([]);
              narrowTo(NO_FILTER);
              takeAllIn();
            }}
            className="inline-flex size-6 shrink-0 items-center justify-center rounded-sm hover:text-ink">
            <Icon name="close" size={12} />
          </button>
        )}
      </div>
      <textarea
        id="question"
        aria-label={t("Question")}
        rows={1}
        maxLength={LONGEST}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        placeholder={t("Ask your documents")}
        className="block field-sizing-content max-h-50 min-h-11 w-full resize-none bg-transparent px-3 py-2 font-serif text-lg text-ink placeholder:text-muted focus-visible:outline-none"
      />
      <div className="flex items-center justify-between gap-2 px-1.5 pb-1.5">
        <ChatControls />
        {busy ? (
          <Button icon="stop" onClick={stop}>
            {t("Stop")}
          </Button>
        ) : (
          <Button type="submit" look="primary" icon="send" disabled={text.trim() === ""}>
            {t("Ask")}
          </Button>
        )}
      </div>
    </form>
  );
}
