import { useQuery } from "@tanstack/react-query";
import { suggestions } from "@/api/queries";
import { useChat } from "@/hooks/use-chat";
import { useWorkspace } from "@/hooks/use-workspace";

/** Questions that the indexed documents can answer. Without any, nothing is shown. */
export function Suggestions() {
  const { library } = useWorkspace();
  const { ask } = useChat();
  const { data } = useQuery(suggestions(library));
  const questions = data?.suggestions ?? [];
  if (questions.length === 0) return null;
  return (
    <ul aria-label="Suggested questions" className="mb-2 flex flex-wrap gap-1.5">
      {questions.map(({ question }) => (
        <li key={question} className="max-w-full">
          <button type="button" onClick={() => ask(question)} title={question} className="max-w-full truncate rounded-full border border-line px-3 py-1 text-left text-xs text-muted hover:border-line-strong hover:text-ink">
            {question}
          </button>
        </li>
      ))}
    </ul>
  );
}
