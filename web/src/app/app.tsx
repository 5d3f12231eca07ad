import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { libraries } from "@/api/queries";
import { Banner } from "@/components/ui/banner";
import { Guarded } from "@/components/ui/guarded";
import { Skeleton } from "@/components/ui/states";
import { CheckPage } from "@/features/check/check-page";
import { SearchPage } from "@/features/search/search-page";
import { ReaderPane } from "@/features/reader/reader-pane";
import { useChat } from "@/hooks/use-chat";
import { useConversationAddress } from "@/hooks/use-conversation-address";
import { useHotkeys } from "@/hooks/use-hotkeys";
import { goTo, type PageName, useRoute } from "@/hooks/use-route";
import { useServer } from "@/hooks/use-server";
import { setTheme, useTheme } from "@/hooks/use-theme";
import { useViewAddress } from "@/hooks/use-view-address";
import { useWorkspace } from "@/hooks/use-workspace";
import { isUntouched } from "@/lib/first-steps";
import { t } from "@/lib/language";
import { AskPage } from "./ask-page";
import { Header, NEXT_THEME, PAGE_NAMES } from "./header";
import { HelpSheet } from "./help-sheet";
import { KeyDialog } from "./key-dialog";
import { UploadInputs, useUploadInputs } from "./upload-inputs";

// Pages with charts and tables are fetched when they are opened.
const InspectPage = lazy(async () => ({ default: (await import("@/features/inspect/inspect-page")).InspectPage }));
const EvaluatePage = lazy(async () => ({ default: (await import("@/features/evaluate/evaluate-page")).EvaluatePage }));
const SettingsPage = lazy(async () => ({ default: (await import("@/features/settings/settings-page")).SettingsPage }));
const StatusPage = lazy(async () => ({ default: (await import("@/features/status/status-page")).StatusPage }));

export function App() {
  const { page, argument } = useRoute();
  const key = page === "ask" || page === "search" ? page : `${page}/${argument ?? ""}`;
  const { away } = useServer();
  const [help, setHelp] = useState(false);
  const inputs = useUploadInputs();
  const { reader } = useWorkspace();
  useStartLibrary();
  useConversationAddress();
  useViewAddress();
  useShortcuts({ help: () => setHelp(true), pickFiles: inputs.pickFiles });
  useEffect(() => {
    document.title = page === "ask" ? "DocuMind" : `${nameOf(page)} · DocuMind`;
  }, [page]);
  return (
    <div className="flex h-full flex-col">
      <Header away={away} onHelp={() => setHelp(true)} />
      {away && (
        <Banner tone="bad" className="rounded-none">
          {t("The server does not answer. What is on this page stays; it goes on by itself when the server is back.")}
        </Banner>
      )}
      <main className="min-h-0 flex-1">
        <h1 className="sr-only">{nameOf(page)}</h1>
        <Guarded key={key} what={nameOf(page)}>
          {page === "ask" && <AskPage onPickFiles={inputs.pickFiles} onPickFolder={inputs.pickFolder} />}
          {(page === "search" || page === "check") && (
            <Beside aside={reader === null ? null : <Guarded key={`${reader.library}/${reader.doc_id}`} what={t("This document")}><ReaderPane target={reader} /></Guarded>}>
              {page === "search" ? <SearchPage /> : <CheckPage />}
            </Beside>
          )}
          <Suspense
            fallback={
              <div className="mx-auto max-w-5xl p-6">
                <Skeleton />
              </div>
            }
          >
            {page === "inspect" && <InspectPage answerId={argument} />}
            {page === "evaluate" && <EvaluatePage reportId={argument} />}
            {page === "status" && <StatusPage />}
            {page === "settings" && <SettingsPage />}
          </Suspense>
        </Guarded>
      </main>
      <UploadInputs files={inputs.files} folder={inputs.folder} />
      <KeyDialog />
      <HelpSheet open={help} onClose={() => setHelp(false)} />
    </div>
  );
}

function nameOf(page: PageName): string {
  return t(PAGE_NAMES[page]);
}

function Beside({ aside, children }: { aside: ReactNode; children: ReactNode }) {
  return (
    <div className="flex h-full min-h-0">
      <div className={aside === null ? "min-w-0 flex-1" : "min-w-0 flex-1 max-lg:hidden"}>{children}</div>
      {aside !== null && <div className="min-h-0 w-full shrink-0 lg:w-[min(46rem,50%)]">{aside}</div>}
    </div>
  );
}

/** Until a person chooses: the library that the server asks by default; both while there are samples alone. */
function useStartLibrary(): void {
  const { data } = useQuery(libraries);
  const { suggest } = useWorkspace();
  useEffect(() => {
    if (data === undefined) return;
    suggest(isUntouched(data.libraries, 0) ? "all" : data.default_library);
    // Only what the server says matters here; the action is stable in effect.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [data]);
}

function useShortcuts({ help, pickFiles }: { help: () => void; pickFiles: () => void }): void {
  const theme = useTheme();
  const { stop, reset, conversationId, busy } = useChat();
  const { reader, read, toggleSide } = useWorkspace();
  const focusOn = (selector: string): void => document.querySelector<HTMLElement>(selector)?.focus();
  const ask = (conversation: string | null): void => {
    goTo("ask", conversation);
    requestAnimationFrame(() => focusOn("#question"));
  };
  useHotkeys({
    "/": () => ask(conversationId),
    "?": help,
    "g a": () => ask(conversationId),
    "g s": () => goTo("search"),
    "g c": () => goTo("check"),
    "g i": () => goTo("inspect"),
    "g e": () => goTo("evaluate"),
    "g t": () => goTo("status"),
    "g o": () => goTo("settings"),
    t: () => setTheme(NEXT_THEME[theme]),
    n: () => {
      reset();
      ask(null);
    },
    u: pickFiles,
    f: () => focusOn("#find-document"),
    "[": toggleSide,
    j: () => stepCitation(1),
    k: () => stepCitation(-1),
    o: () => document.querySelector<HTMLElement>("article[aria-current='true'] h3 button")?.click(),
    Escape: () => {
      if (busy) stop();
      else if (reader !== null) read(null);
    },
  });
}

/** Press the next or previous citation pill of the conversation, starting from the pressed one. */
function stepCitation(step: 1 | -1): void {
  const pills = [...document.querySelectorAll<HTMLButtonElement>("button[data-citation]")];
  if (pills.length === 0) return;
  const at = pills.findIndex((pill) => pill.ariaPressed === "true");
  const next = at < 0 ? (step === 1 ? 0 : pills.length - 1) : (at + step + pills.length) % pills.length;
  pills[next]?.focus();
  pills[next]?.click();
}
