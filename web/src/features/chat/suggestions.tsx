import { useQuery } from "@tanstack/react-query";
import { documentSuggestions, suggestions } from "@/api/queries";
import type { AnswerRecord } from "@/api/types";
import { useChat } from "@/hooks/use-chat";
import { useWorkspace } from "@/hooks/use-workspace";
import { t } from "@/lib/language";

const FURTHER = 3;

/** Questions that the indexed documents can answer. Without any, nothing is shown. */
export function Suggestions() {
  const { library } = useWorkspace();
  const { ask } = useChat();
  const { data } = useQuery(suggestions(library));
  return <Questions label={t("Suggested questions")} questions={(data?.suggestions ?? []).map((one) => one.question)} ask={ask} />;
}

/** Further questions that the document cited first can answer, but the one that was asked. */
export function FurtherQuestions({ question, answer, ask }: { question: string; answer: AnswerRecord; ask: (question: string) => void }) {
  const cited = answer.sentences.flatMap((sentence) => sentence.citations)[0];
  const source = answer.sources.find(({ n }) => n === cited?.n);
  const { data } = useQuery({ ...documentSuggestions(source?.library ?? answer.library, source?.doc_id ?? "", FURTHER + 1), enabled: source !== undefined });
  const further = (data?.suggestions ?? []).map((one) => one.question).filter((one) => one.toLowerCase() !== question.toLowerCase());
  return <Questions label={t("Further questions")} questions={further.slice(0, FURTHER)} ask={ask} />;
}

function Questions({ label, questions, ask }: { label: string; questions: string[]; ask: (question: string) => void }) {
  if (questions.length === 0) return null;
  return (
    <ul aria-label={label} className="mt-2 mb-2 flex flex-wrap gap-1.5">
      {questions.map((question) => (
        <li key={question} className="max-w-full">
          <button type="button" onClick={() => ask(question)} title={question} className="max-w-full rounded-2xl pointer-coarse:py-2 border border-line px-3 py-1 text-left text-xs text-muted hover:border-line-strong hover:text-ink">
            <span className="line-clamp-2">{question}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
