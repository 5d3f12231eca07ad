import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answers, storedAnswer } from "@/api/queries";
import type { AnswerRecord } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { LineForm } from "@/components/ui/field";
import { Page, Section } from "@/components/ui/section";
import { Empty, Failure, Skeleton } from "@/components/ui/states";
import { useChat } from "@/hooks/use-chat";
import { goTo, hrefOf } from "@/hooks/use-route";
import { ago, answeredBy, milliseconds, MODE_NAMES, percent, STRATEGY_NAMES } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { noticeWords } from "@/lib/server-words";
import { tracePasses } from "@/lib/trace-picture";
import { CandidateTable } from "./candidate-table";
import { ContextBudget } from "./context-budget";
import { RankFlow } from "./rank-flow";
import { StageTimes } from "./stage-times";

/** How an answer came to be: each candidate's way through retrieval, the time each step took, what fitted the context. */
export function InspectPage({ answerId }: { answerId: string | null }) {
  return (
    <Page wide title={t("Inspect")} lead={t("How an answer came about: which passages were found, which of them were used and why, and what took how long. You need none of this to ask.")} aside={<LineForm label={t("Answer id")} placeholder={t("Answer id")} button={t("Open")} onSend={(id) => goTo("inspect", id)} />}>
      {answerId === null ? <RecentAnswers /> : <AnswerTrace key={answerId} answerId={answerId} />}
    </Page>
  );
}

function RecentAnswers() {
  const stored = useQuery(answers);
  if (stored.isPending) return <Skeleton lines={6} />;
  if (stored.isError) return <Failure error={stored.error} onRetry={() => void stored.refetch()} />;
  if (stored.data.answers.length === 0) {
    return (
      <Empty title={t("No answer to look into yet")} action={<Button onClick={() => goTo("ask")}>{t("Ask something")}</Button>}>
        {t("Each answer that is kept stands here.")}
      </Empty>
    );
  }
  return (
    <Section title={t("Answers, newest first")}>
      <ul aria-label={t("Answers")} className="flex flex-col">
        {stored.data.answers.map((one) => (
          <li key={one.answer_id} className="border-b border-line last:border-b-0">
            <a href={hrefOf("inspect", one.answer_id)} className="block rounded-sm px-1 py-2 hover:bg-sunken">
              <span className="block truncate">{one.question === "" ? t("The text of this answer is not kept") : one.question}</span>
              <span className="text-2xs text-muted">{[ago(one.at), one.status === "abstained" ? t("Not enough evidence") : ""].filter(Boolean).join(" · ")}</span>
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function AnswerTrace({ answerId }: { answerId: string }) {
  const { exchanges } = useChat();
  const mine = exchanges.find((e) => e.answerId === answerId);
  const stored = useQuery({ ...storedAnswer(answerId), retry: false });
  // With STORE_ANSWERS off the server has nothing; the answer of this tab still has its trace.
  const answer: AnswerRecord | null = stored.data ?? mine?.answer ?? null;
  const hashed = stored.data?.kept === "hash";
  const question = mine?.question ?? (hashed ? t("The text of this answer is not kept") : stored.data?.asked.question) ?? null;
  if (answer === null) {
    if (stored.isPending) return <Skeleton lines={10} />;
    return <Failure error={stored.error ?? new Error(t("This answer is not stored."))} onRetry={() => void stored.refetch()} />;
  }
  return <Trace answer={answer} question={question} />;
}

function Trace({ answer, question }: { answer: AnswerRecord; question: string | null }) {
  const [selected, setSelected] = useState<number | null>(null);
  const { trace } = answer;
  const passes = tracePasses(trace?.stages ?? [], answer.sources);
  const total = trace?.stages.reduce((sum, stage) => sum + stage.ms, 0) ?? 0;
  const facts: [Message, string][] = [
    ["Status", answer.status === "answered" ? t("answered") : answer.status === "abstained" ? t("Not enough evidence") : answer.status],
    ["Mode", t(MODE_NAMES[answer.query_mode])],
    ["Strategy", t(STRATEGY_NAMES[answer.retrieval_strategy])],
    ["Answered by", answeredBy(answer.generator) || "–"],
    ["Embedded by", answer.embedder],
    ["Confidence", percent(answer.confidence)],
    ["Model calls", String(trace?.llm_calls ?? 0)],
    ["Time", milliseconds(total)],
  ];
  return (
    <>
      <div className="rounded-lg border border-line bg-surface p-4">
        {question !== null && <h2 className="font-serif text-lg">{question}</h2>}
        {answer.rewritten_query !== null && <p className="text-sm text-muted">{t("Searched as “{words}”", { words: answer.rewritten_query })}</p>}
        <dl className="mt-3 grid grid-cols-2 gap-x-6 gap-y-2 sm:grid-cols-4">
          {facts.map(([name, value]) => (
            <div key={name} className="min-w-0">
              <dt className="text-2xs text-muted">{t(name)}</dt>
              <dd className="truncate tabular-nums" title={value}>
                {value}
              </dd>
            </div>
          ))}
        </dl>
      </div>
      {answer.notices.map((notice) => (
        <Banner key={notice.code} tone="info">
          {noticeWords(notice)}
        </Banner>
      ))}
      {trace === null ? (
        <Empty title={t("No trace")}>{t("This answer was asked without one.")}</Empty>
      ) : (
        <>
          {passes.length === 0 && (
            <Section title={t("Candidates through the steps")}>
              <p className="text-sm text-muted">{t("No candidates were recorded for this answer.")}</p>
            </Section>
          )}
          {passes.map((pass, i) => (
            <Section key={i} title={passes.length === 1 ? t("Candidates through the steps") : t("Candidates through the steps, search {at} of {count}", { at: i + 1, count: passes.length })}>
              <RankFlow pass={pass} selected={selected} onSelect={setSelected} />
              <details className="mt-3" open={passes.length === 1}>
                <summary className="mb-2 text-xs font-semibold text-muted">{t("Why each stayed or fell")}</summary>
                <CandidateTable pass={pass} selected={selected} onSelect={setSelected} />
              </details>
            </Section>
          ))}
          <div className="grid gap-4 lg:grid-cols-2">
            <Section title={t("Time per step")}>
              <StageTimes stages={trace.stages} />
            </Section>
            <Section title={t("What the model was handed")}>
              <ContextBudget context={trace.context} />
            </Section>
          </div>
        </>
      )}
    </>
  );
}
