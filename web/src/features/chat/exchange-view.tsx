import { useQuery } from "@tanstack/react-query";
import { memo, useMemo, useState } from "react";
import { libraries } from "@/api/queries";
import { Banner } from "@/components/ui/banner";
import { Button, IconButton } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { Tag } from "@/components/ui/tag";
import { hrefOf } from "@/hooks/use-route";
import { useWorkspace } from "@/hooks/use-workspace";
import { cutWords, LONGEST, shownOf, type Exchange } from "@/lib/exchange";
import { LIBRARY_NAMES, modelName } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { noticeWords } from "@/lib/server-words";
import { AnswerFooter } from "./answer-footer";
import { CitedText } from "./cited-text";
import { NearestPlaces } from "./nearest-places";
import { concerns, noticeTone } from "./notices";
import { FoldedQuote, LeadingQuote } from "./quote";
import { FurtherQuestions } from "./suggestions";
import { Waiting } from "./waiting";

const STOPPED_EARLY: Message = "Stopped before the first word.";
const STOPPED: Message = "Stopped. What the model wrote was not checked against the sources and is not remembered.";
const STOPPED_QUOTED: Message = "Stopped. What stands above is from your documents, word for word; it is not remembered.";

interface Props {
  exchange: Exchange;
  onAsk: (question: string) => void;
  /** Asks a question in its place, changed or by another model. */
  onReplace: (exchange: Exchange, question: string, model?: string) => void;
  /** Goes to another version of the question. */
  onShow: (answerId: string) => Promise<void>;
  /** Lets the model go on where its answer was cut. */
  onGoOn: (cut: Exchange) => void;
  /** The newest of the conversation: further questions stand under it alone, so that nothing above moves while one reads. */
  newest?: boolean;
}

/** A question and its answer. */
export const ExchangeView = memo(function ExchangeView({ exchange, onAsk, onReplace, onShow, onGoOn, newest = false }: Props) {
  const { answer, state } = exchange;
  const [editing, setEditing] = useState(false);
  const { quote, place, words } = useMemo(() => shownOf(exchange), [exchange]);
  const busy = state === "waiting" || state === "streaming";
  const writer = answer?.generator ?? exchange.reading?.model ?? null;
  const notices = (answer?.notices ?? []).filter((notice) => concerns(notice.code, answer));
  const needsModel = answer?.status === "abstained" && notices.some((notice) => notice.code === "mode_needs_model");
  const above = quote !== null && place === "above";
  return (
    <article aria-label={exchange.question} data-answer={exchange.answerId ?? undefined} className="border-b border-line py-5 last:border-b-0">
      <header className="mb-3">
        {editing ? (
          <EditQuestion
            question={exchange.question}
            onSend={(question) => {
              setEditing(false);
              onReplace(exchange, question);
            }}
            onClose={() => setEditing(false)}
          />
        ) : (
          <h2 className="font-sans text-base font-semibold whitespace-pre-wrap [overflow-wrap:anywhere]">{exchange.question}</h2>
        )}
        <Versions exchange={exchange} onShow={onShow} />
        <ScopeLine exchange={exchange} />
      </header>
      {notices.length > 0 && (
        <div className="mb-3 flex flex-col gap-1">
          {notices.map((notice) => (
            <Banner key={notice.code} tone={noticeTone(notice.code)} action={notice.code === "mode_needs_model" ? <ConnectModel /> : undefined}>
              <span title={notice.message}>{noticeWords(notice)}</span>
            </Banner>
          ))}
        </div>
      )}
      {above && <LeadingQuote exchange={exchange} quote={quote} />}
      {busy && words.text === "" && <Waiting exchange={exchange} />}
      {words.text !== "" && !needsModel && (
        <>
          {above && writer !== null && <h3 className="mt-4 mb-1 text-xs font-semibold text-muted">{t("In the words of {model}", { model: modelName(writer) })}</h3>}
          <div className={state === "streaming" ? "prose caret-last" : "prose"} aria-live={state === "streaming" ? "off" : "polite"} aria-busy={state === "streaming"}>
            <CitedText exchange={exchange} passage={words} byModel={typeof answer?.model_text === "string"} />
          </div>
        </>
      )}
      {quote !== null && place === "under" && <FoldedQuote exchange={exchange} quote={quote} />}
      {state === "stopped" && <p className="mt-2 text-xs text-muted">{t(words.text !== "" ? STOPPED : above ? STOPPED_QUOTED : STOPPED_EARLY)}</p>}
      {newest && cutWords(exchange) !== null && (
        <p className="mt-2 flex flex-wrap items-center gap-2 text-sm text-muted">
          {answer !== null && t("The model reached the length limit.")}
          <Button icon="play" onClick={() => onGoOn(exchange)}>
            {t("Continue")}
          </Button>
        </p>
      )}
      {state === "broken" && (
        <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
          {t("Broken off before an answer came.")}
          <Button onClick={() => onAsk(exchange.question)}>{t("Ask again")}</Button>
        </p>
      )}
      {state === "failed" && exchange.error !== null && (
        <div className="mt-2">
          <Failure error={exchange.error} onRetry={() => onAsk(exchange.question)} what={t("No answer.")} />
        </div>
      )}
      {answer !== null && <NearestPlaces places={answer.nearest} />}
      {answer?.status === "abstained" && !needsModel && <Elsewhere exchange={exchange} onAsk={onAsk} />}
      {newest && answer?.status === "answered" && <FurtherQuestions question={exchange.question} answer={answer} ask={onAsk} />}
      {answer !== null && <AnswerFooter question={exchange.question} answer={answer} onAskAgain={(model) => onReplace(exchange, exchange.question, model)} onEdit={() => setEditing(true)} />}
    </article>
  );
});

/** The question as a field; Enter asks it in the place of the old one, which stays as a branch. */
function EditQuestion({ question, onSend, onClose }: { question: string; onSend: (question: string) => void; onClose: () => void }) {
  const [text, setText] = useState(question);
  const fits = text.trim() !== "" && text.trim() !== question;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (fits) onSend(text.trim());
      }}
    >
      <textarea
        aria-label={t("Changed question")}
        autoFocus
        rows={1}
        maxLength={LONGEST}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onClose();
          } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }
        }}
        className="block field-sizing-content max-h-50 w-full resize-none rounded-md border border-line-strong bg-surface px-2.5 py-1.5 text-base text-ink"
      />
      <span className="mt-1.5 flex gap-1.5">
        <Button type="submit" look="primary" disabled={!fits}>
          {t("Ask")}
        </Button>
        <Button onClick={onClose}>{t("Cancel")}</Button>
      </span>
    </form>
  );
}

/** Which version of its question this is, and the way to the others. */
function Versions({ exchange: { versions, answerId }, onShow }: Pick<Props, "exchange" | "onShow">) {
  const [error, setError] = useState(false);
  const at = versions.indexOf(answerId ?? "");
  if (versions.length < 2 || at < 0) return null;
  const go = (step: 1 | -1) => (): void => {
    const there = versions[at + step];
    if (there !== undefined) onShow(there).then(() => setError(false), () => setError(true));
  };
  return (
    <div role="group" aria-label={t("Versions of this question")} className="-ml-1.5 flex items-center text-xs text-muted">
      <IconButton icon="left" label={t("Earlier version")} disabled={at === 0} onClick={go(-1)} />
      <span className="tabular-nums">
        {at + 1} / {versions.length}
      </span>
      <IconButton icon="right" label={t("Later version")} disabled={at === versions.length - 1} onClick={go(1)} />
      {error && <span role="alert">{t("That did not work.")}</span>}
    </div>
  );
}

function ConnectModel() {
  return (
    <a href={hrefOf("settings")} className="shrink-0 font-semibold text-accent underline underline-offset-2">
      {t("Connect a model")}
    </a>
  );
}

/** Offers the library that was not asked, where the one that was asked does not answer. */
function Elsewhere({ exchange, onAsk }: Pick<Props, "exchange" | "onAsk">) {
  const { data } = useQuery(libraries);
  const { choose } = useWorkspace();
  const other = data?.libraries.find((l) => l.library !== exchange.library && l.documents > 0);
  if (other === undefined || exchange.library === "all" || exchange.scope.length > 0 || exchange.filter !== "") return null;
  const askAll = (): void => {
    choose("all");
    onAsk(exchange.question);
  };
  return (
    <p className="mt-2 flex flex-wrap items-center gap-2 text-sm text-muted">
      {t("Only {library} was searched.", { library: t(LIBRARY_NAMES[exchange.library]) })}
      <Button onClick={askAll}>
        {t("Ask {n} documents of {library} too", { n: other.documents, library: t(LIBRARY_NAMES[other.library]) })}
      </Button>
    </p>
  );
}

function ScopeLine({ exchange }: { exchange: Exchange }) {
  const { scope, library, filter } = exchange;
  const rewritten = exchange.answer?.rewritten_query ?? null;
  const limited = scope.length > 0 || filter !== "";
  // Without a model, words of earlier questions stand before this one (`carried` in app/answer/questions.py).
  const carried = `: ${exchange.question}`;
  if (!limited && rewritten === null) return null;
  return (
    <div className="mt-1 flex flex-wrap items-center gap-1 text-xs text-muted">
      {limited && (
        <>
          <span>{t("Only")}</span>
          {scope.slice(0, 3).map((d) => (
            <Tag key={d.doc_id} title={d.title} tone="info">
              <span className="max-w-48 truncate">{d.title}</span>
            </Tag>
          ))}
          {scope.length > 3 && <span>{t("and {n} more", { n: scope.length - 3 })}</span>}
          {filter !== "" && <Tag tone="info">{filter}</Tag>}
          <span>{t("in {library}", { library: t(LIBRARY_NAMES[library]) })}</span>
        </>
      )}
      {rewritten !== null && <span>{rewritten.endsWith(carried) ? t("With “{words}” from before", { words: rewritten.slice(0, -carried.length) }) : t("Searched as “{words}”", { words: rewritten })}</span>}
    </div>
  );
}
