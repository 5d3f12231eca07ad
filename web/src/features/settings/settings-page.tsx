import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { health } from "@/api/queries";
import { ShareLinks } from "@/components/share-links";
import { Banner } from "@/components/ui/banner";
import { Segmented, Select } from "@/components/ui/field";
import { Page, Section } from "@/components/ui/section";
import { useChat } from "@/hooks/use-chat";
import { usePreferences } from "@/hooks/use-preferences";
import { hrefOf } from "@/hooks/use-route";
import { setTheme, THEME_NAMES, useTheme } from "@/hooks/use-theme";
import { useWorkspace } from "@/hooks/use-workspace";
import { LIBRARIES, MODE_NAMES, optionsOf } from "@/lib/format";
import { browserLanguage, type Language, LANGUAGES, speak, t, tx } from "@/lib/language";
import { KeysSection } from "./keys-section";
import { ModelsSection } from "./models-section";
import { PromptsSection } from "./prompts-section";

const LANGUAGE_CHOICES = (Object.keys(LANGUAGES) as Language[]).map((value) => ({ value, label: LANGUAGES[value] }));

/** What a person sets: who answers, how this browser begins, how the page looks. */
export function SettingsPage() {
  const theme = useTheme();
  const { library, mode, language, prefer } = usePreferences();
  const { choose } = useWorkspace();
  const { setControls } = useChat();
  const closed = useQuery(health).data?.settings === false;
  return (
    <Page title={t("Settings")} lead={t("Changes count at once. What the server alone decides stands in its configuration file.")}>
      {closed ? <Banner>{t("Models and keys of this server are set by who runs it, not on the page (ALLOW_SETTINGS=false). What stands here counts for this browser.")}</Banner> : <ModelsSection />}
      <Section title={t("When you ask")}>
        <dl className="flex flex-col gap-4">
          <Setting name={t("Library")} says={t("Where this browser looks first.")}>
            <Select
              label={t("Library at the start")}
              value={library ?? ""}
              options={[{ value: "", label: t("As the server says") }, ...optionsOf(LIBRARIES)]}
              onValue={(value) => {
                prefer({ library: value === "" ? null : value });
                if (value !== "") choose(value);
              }}
            />
          </Setting>
          <Setting name={t("Kind of answer")} says={t("What a question asks for unless you say otherwise.")}>
            <Select
              label={t("Kind of answer at the start")}
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
      <Section title={t("Appearance")}>
        <dl className="flex flex-col gap-4">
          <Setting name={t("Language")} says={t("Of this page. Answers follow your question and documents; details of errors are English.")}>
            <Select
              label={t("Language")}
              value={language ?? ""}
              options={[{ value: "", label: t("As the browser ({language})", { language: LANGUAGES[browserLanguage()] }) }, ...LANGUAGE_CHOICES]}
              onValue={(value) => {
                const wanted = value === "" ? null : value;
                prefer({ language: wanted });
                void speak(wanted);
              }}
            />
          </Setting>
          <Setting name={t("Theme")} says={t("Light, dark, or as the system is set; the key t goes through them.")}>
            <Segmented label={t("Theme")} value={theme} options={optionsOf(THEME_NAMES)} onValue={setTheme} />
          </Setting>
        </dl>
      </Section>
      <PromptsSection />
      {!closed && <KeysSection />}
      <Section title={t("Shared answers")}>
        <ShareLinks answerId={null} />
      </Section>
      <p className="text-sm text-muted">
        {tx("What the server holds and does right now stands under {status}.", {
          status: (
            <a href={hrefOf("status")} className="text-accent underline underline-offset-2">
              {t("Status")}
            </a>
          ),
        })}
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
