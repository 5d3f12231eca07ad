import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/http";
import { App } from "@/app/app";
import { linkedTarget } from "@/app/linked-target";
import { recalled, rememberOnLeaving } from "@/app/tab-memory";
import { ChatContext, ChatSession } from "@/hooks/use-chat";
import { applyTheme } from "@/hooks/use-theme";
import { UploadContext, UploadQueue } from "@/hooks/use-uploads";
import { initialWorkspace, WorkspaceContext, type Workspace } from "@/hooks/use-workspace";
import { Store } from "@/lib/store";
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
const linked = linkedTarget(window.location.search);
const kept = recalled();
const workspace = new Store<Workspace>({ ...initialWorkspace, ...kept.workspace, ...linked });
const session = new ChatSession(workspace, kept);
rememberOnLeaving(workspace, session);

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <WorkspaceContext value={workspace}>
        <ChatContext value={session}>
          <UploadContext value={new UploadQueue(workspace)}>
            <App />
          </UploadContext>
        </ChatContext>
      </WorkspaceContext>
    </QueryClientProvider>
  </StrictMode>,
);
