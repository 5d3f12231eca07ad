import { useQuery } from "@tanstack/react-query";
import { health } from "@/api/queries";
import { Button } from "@/components/ui/button";
import { answeredBy } from "@/lib/format";
import { t, tx } from "@/lib/language";

const OLLAMA = "Ollama";
const COMMANDS = "ollama serve\nollama pull llama3.2";

/** How a language model is connected: where to get Ollama, the two commands, and a look whether it answers. */
export function ConnectOllama() {
  const state = useQuery(health);
  const generator = state.data?.generator ?? null;
  const why = state.data?.generator_why ?? "";
  const connected = generator !== null && !generator.startsWith("extractive");
  return (
    <ol className="mt-1 flex list-decimal flex-col gap-1 pl-5">
      <li>
        {tx("Install {ollama} on the machine that runs DocuMind.", {
          ollama: (
            <a href="https://ollama.com/download" target="_blank" rel="noopener noreferrer" className="text-accent underline underline-offset-2">
              {OLLAMA}
            </a>
          ),
        })}
      </li>
      <li>
        {t("Start it and fetch a model, unless it has one that chats:")}
        <pre className="mt-1 overflow-x-auto rounded-md bg-sunken px-2 py-1 font-mono text-xs text-ink select-all">{COMMANDS}</pre>
      </li>
      <li>
        <Button look="quiet" icon="retry" disabled={state.isFetching} onClick={() => void state.refetch()} className="-ml-2">
          {t("Check")}
        </Button>
        <span role="status">
          {state.isFetching ? t("Looking") : connected ? t("Connected: {model} answers ({why}).", { model: answeredBy(generator), why }) : why === "" ? t("Not connected yet. No restart is needed.") : t("Not connected yet: {why}. No restart is needed.", { why })}
        </span>
      </li>
    </ol>
  );
}
