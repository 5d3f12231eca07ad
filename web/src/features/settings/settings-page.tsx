import type { ReactNode } from "react";
import { Segmented, Select } from "@/components/ui/field";
import { Page, Section } from "@/components/ui/section";
import { useChat } from "@/hooks/use-chat";
import { usePreferences } from "@/hooks/use-preferences";
import { hrefOf } from "@/hooks/use-route";
import { setTheme, type Theme, useTheme } from "@/hooks/use-theme";
import { useWorkspace } from "@/hooks/use-workspace";
import { MODE_NAMES, optionsOf } from "@/lib/format";
import { ModelsSection } from "./models-section";

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** What a person sets: who answers, how this browser begins, how the page looks. */
export function SettingsPage() {
  const theme = useTheme();
  const { library, mode, prefer } = usePreferences();
  const { choose } = useWorkspace();
  const { setControls } = useChat();
  return (
    <Page title="Settings" lead="Changes count at once. What the server alone decides stands in its configuration file.">
      <ModelsSection />
      <Section title="When you ask">
        <dl className="flex flex-col gap-4">
          <Setting name="Library" says="Where this browser looks first.">
            <Select
              label="Library at the start"
              value={library ?? ""}
              options={[
                { value: "", label: "As the server says" },
                { value: "papers", label: "Papers: your own documents" },
                { value: "public", label: "Public: encyclopedia text" },
                { value: "all", label: "Both" },
              ]}
              onValue={(value) => {
                prefer({ library: value === "" ? null : value });
                if (value !== "") choose(value);
              }}
            />
          </Setting>
          <Setting name="Kind of answer" says="What a question asks for unless you say otherwise.">
            <Select
              label="Kind of answer at the start"
              value={mode ?? "general"}
              options={optionsOf(MODE_NAMES)}
              onValue={(value) => {
                prefer({ mode: value });
                setControls({ mode: value });
              }}
            />
          </Setting>
        </dl>
      </Section>
      <Section title="Appearance">
        <dl>
          <Setting name="Theme" says="Light, dark, or as the system is set; the key t goes through them.">
            <Segmented label="Theme" value={theme} options={THEMES} onValue={setTheme} />
          </Setting>
        </dl>
      </Section>
      <p className="text-sm text-muted">
        What the server holds and does right now stands under{" "}
        <a href={hrefOf("status")} className="text-accent underline underline-offset-2">
          Status
        </a>
        .
      </p>
    </Page>
  );
}

function Setting({ name, says, children }: { name: string; says: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-1 [&_select]:border-line-strong [&_select]:text-ink">
      <dt className="text-sm font-medium">
        {name}
        <span className="block text-xs font-normal text-muted">{says}</span>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
