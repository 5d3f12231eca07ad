import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { highlightedCopy } from "@/api/highlights";
import { call } from "@/api/http";
import { models } from "@/api/queries";
import type { AnswerRecord, Feedback, StoredAnswer } from "@/api/types";
import { ShareDialog } from "@/components/share-links";
import { IconButton } from "@/components/ui/button";
import { LineForm } from "@/components/ui/field";
import { type Action, ActionMenu } from "@/components/ui/menu";
import { useCopied } from "@/hooks/use-copied";
import { usePins } from "@/hooks/use-pins";
import { hrefOf } from "@/hooks/use-route";
import { asBibtex, asCslJson, asMarkdown, asRis } from "@/lib/attribution";
import { isQuoted } from "@/lib/exchange";
import { answeredBy, milliseconds } from "@/lib/format";
import { marksOf } from "@/lib/highlights";
import { t } from "@/lib/language";
import { chatModels } from "@/lib/models";
import { saveAs } from "@/lib/save-as";
import { confidenceOf, supportOf, type Trust } from "@/lib/trust";

/** Under an answer: how well it is supported, who answered, and what to do with it. */
export function AnswerFooter({ question, answer, onAskAgain, onEdit }: { question: string; answer: AnswerRecord; onAskAgain: (model?: string) => void; onEdit: () => void }) {
  const { state, copy } = useCopied();
  const { isPinned, toggle } = usePins();
  const [sharing, setSharing] = useState(false);
  const installed = chatModels(useQuery(models).data);
  const vote = useMutation({
    mutationFn: (given: Feedback) => call("POST", `api/v1/answers/${encodeURIComponent(answer.answer_id)}/feedback`, given),
  });
  const copyOf = useMutation({
    mutationFn: async ({ source, marks }: ReturnType<typeof marksOf>[number]) => saveAs(await highlightedCopy(source, marks), `${source.title.replace(/[/\\:]/g, " ")}.pdf`),
  });
  const thumbs = vote.isError ? undefined : (vote.variables ?? (answer as Partial<StoredAnswer>).feedback)?.["thumbs"];
  const pin = { conversation: answer.conversation_id ?? "", answer: answer.answer_id };
  const time = answer.trace?.stages.reduce((sum, stage) => sum + stage.ms, 0) ?? null;
  return (
    <footer className="mt-3 flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs text-muted">
      <p className="min-w-0">
        <Support answer={answer} />
        <span title={t("Answered by {generator}, searched with {embedder}", { generator: answer.generator, embedder: answer.embedder })}>
          {[isQuoted(answer) ? "" : answeredBy(answer.generator), time === null ? "" : milliseconds(time)].filter(Boolean).join(" · ")}
        </span>
      </p>
      <div className="ml-auto flex items-center">
        <span role="status" className="mr-1">
          {state === "copied" && t("Copied")}
          {state === "failed" && t("The browser does not allow copying here")}
          {vote.isError && t("Your vote was not stored")}
          {copyOf.isError && copyOf.error.message}
        </span>
        <IconButton icon="up" label={t("Good answer")} pressed={thumbs === "up"} onClick={() => vote.mutate({ thumbs: "up" })} />
        <IconButton icon="down" label={t("Bad answer")} pressed={thumbs === "down"} onClick={() => vote.mutate({ thumbs: "down" })} />
        {answer.conversation_id !== null && <IconButton icon="pin" label={isPinned(pin) ? t("Unpin this answer") : t("Pin this answer")} pressed={isPinned(pin)} onClick={() => toggle({ ...pin, title: question })} />}
        {installed.length < 2 ? (
          <IconButton icon="retry" label={t("Ask again, with what Options say now")} onClick={() => onAskAgain()} />
        ) : (
          <ActionMenu
            icon="retry"
            label={t("Ask again")}
            actions={[[t("With what Options say now"), () => onAskAgain()], ...installed.map((name): Action => [t("With {model}", { model: name }), () => onAskAgain(name)])]}
          />
        )}
        <IconButton icon="edit" label={t("Edit the question")} onClick={onEdit} />
        <ActionMenu
          icon="copy"
          label={t("Copy answer")}
          actions={[
            [t("As Markdown, with sources"), () => copy(asMarkdown(question, answer))],
            [t("Sources as BibTeX"), () => copy(asBibtex(answer.sources))],
            [t("Sources as CSL-JSON"), () => copy(asCslJson(answer.sources))],
            [t("Sources as RIS"), () => copy(asRis(answer.sources))],
            [t("Text only"), () => copy(answer.answer)],
            [t("Link to this answer"), () => copy(addressOf(answer))],
            [t("Share by link…"), () => setSharing(true)],
            ...marksOf(answer).map(({ source, marks }): Action => [t("PDF with its citations marked: {title}", { title: source.title }), () => copyOf.mutate({ source, marks })]),
          ]}
        />
        <ShareDialog answerId={answer.answer_id} open={sharing} onClose={() => setSharing(false)} />
        <a href={hrefOf("inspect", answer.answer_id)} className="ml-1 rounded-md px-2 py-1 text-xs hover:bg-sunken hover:text-ink">
          {t("Inspect")}
        </a>
      </div>
      {vote.isSuccess && vote.variables.comment === undefined && <LineForm className="w-full" label={t("Comment")} placeholder={t("Say why, if you like")} button={t("Send")} maxLength={2000} onSend={(comment) => vote.mutate({ ...vote.variables, comment })} />}
      {vote.isSuccess && vote.variables.comment !== undefined && (
        <p role="status" className="w-full">
          {t("Kept with the answer. Thank you.")}
        </p>
      )}
    </footer>
  );
}

/** Where this answer stands in its conversation, for this server's readers. */
function addressOf(answer: AnswerRecord): string {
  return new URL(hrefOf("ask", answer.conversation_id, answer.answer_id), window.location.href).href;
}

function Support({ answer }: { answer: AnswerRecord }) {
  if (answer.status === "abstained" && answer.notices.some((notice) => notice.code === "mode_needs_model")) return <span className="mr-3 text-warn">{t("Needs a language model")}</span>;
  if (answer.status === "abstained") return <span className="mr-3 text-warn">{t("Not enough evidence")}</span>;
  if (answer.status !== "answered" || answer.sentences.length === 0) return null;
  const confidence = confidenceOf(answer);
  const support: Trust = isQuoted(answer) ? quoted() : supportOf(answer);
  const why = [support.why, confidence.why].filter((one) => one !== null);
  return (
    <span className="mr-3">
      <span className={INK[support.tone]} title={support.title}>
        {support.words}
      </span>
      {" · "}
      <span className={INK[confidence.tone]} title={confidence.title}>
        {confidence.words}
      </span>
      {why.length > 0 && `: ${why.join("; ")}`}
    </span>
  );
}

const INK: Record<Trust["tone"], string> = { good: "text-good", warn: "text-warn", bad: "text-bad" };

function quoted(): Trust {
  return { words: t("Quoted, word for word"), tone: "good", title: t("No model wrote this: every word stands in your documents, where its mark leads"), why: null };
}
