import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/http";
import { App } from "@/app/app";
import { recalled, rememberOnLeaving } from "@/app/tab-memory";
import { ChatContext, ChatSession } from "@/hooks/use-chat";
import { useLanguage } from "@/hooks/use-language";
import { applyTheme } from "@/hooks/use-theme";
import { UploadContext, UploadQueue } from "@/hooks/use-uploads";
import { preferences } from "@/hooks/use-preferences";
import { hrefOf, parseHash, useShared } from "@/hooks/use-route";
import { isNarrow, linkedReader, viewOf, viewText } from "@/hooks/use-view-address";
import { initialWorkspace, WorkspaceContext, type Workspace } from "@/hooks/use-workspace";
import { speak } from "@/lib/language";
import { tabs } from "@/lib/tabs";
import { Store } from "@/lib/store";
import "@fontsource-variable/inter";
import "@fontsource-variable/source-serif-4";
import "./styles.css";

applyTheme();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refused, it refuses again; what did not arrive may arrive; a starting or busy server asks for patience.
      retry: (failures, error) => (error instanceof ApiError ? error.problem.retryable && failures < 60 : failures < 2),
      retryDelay: (failures) => Math.min(1000, 250 * 2 ** failures),
      refetchOnWindowFocus: false,
    },
    mutations: { retry: false },
  },
});
const kept = recalled();
const linked = linkedReader(window.location.search);
const named = viewOf(parseHash(window.location.hash).view);
const opened: Partial<Workspace> = linked === null ? named : { reader: linked, pane: "sources", library: linked.library, chosen: true };
const { library } = preferences();
const begun: Workspace = library === null ? initialWorkspace : { ...initialWorkspace, library, chosen: true };
const workspace = new Store<Workspace>({ ...begun, ...kept.workspace, ...opened });
// From here on the address says it the page's own way.
if (linked !== null) window.history.replaceState(null, "", `${window.location.pathname}${hrefOf("ask")}?${viewText(workspace.get(), isNarrow())}`);
const session = new ChatSession(workspace, kept);
rememberOnLeaving(workspace, session);
tabs.listen(client, session);

// Without its file a language cannot be shown; English needs none.
await speak(preferences().language).catch(() => undefined);
/** What a link to a shared answer opens: that alone, which needs no key. */
const SharedPage = lazy(async () => ({ default: (await import("@/features/shared/shared-page")).SharedPage }));

/** The page in its language: another one draws all of it again. */
function Spoken() {
  const language = useLanguage();
  const token = useShared();
  if (token === null) return <App key={language} />;
  return (
    <Suspense>
      <SharedPage key={language} token={token} />
    </Suspense>
  );
}

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <WorkspaceContext value={workspace}>
        <ChatContext value={session}>
          <UploadContext value={new UploadQueue(workspace)}>
            <Spoken />
          </UploadContext>
        </ChatContext>
      </WorkspaceContext>
    </QueryClientProvider>
  </StrictMode>,
);
