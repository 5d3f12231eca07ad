import { useQuery } from "@tanstack/react-query";
import { health } from "@/api/queries";
import { IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Icon } from "@/components/ui/icon";
import { ActionMenu } from "@/components/ui/menu";
import { useChat } from "@/hooks/use-chat";
import { hrefOf, type PageName, useRoute } from "@/hooks/use-route";
import { setTheme, type Theme, THEME_NAMES, useTheme } from "@/hooks/use-theme";
import { answeredBy } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { modelsInUse } from "@/lib/models";

export const PAGE_NAMES: Record<PageName, Message> = { ask: "Ask", search: "Search", check: "Check", inspect: "Inspect", evaluate: "Evaluate", status: "Status", settings: "Settings" };
/** Those in the row; settings have a sign of their own. */
const NAMES = (Object.entries(PAGE_NAMES) as [PageName, Message][]).filter(([name]) => name !== "settings");

/** A name is the same in every language. */
const NAME = "DocuMind";
/** How many of them a narrow page shows; the others stand behind "More", whose place the one that is looked at takes. */
const ALWAYS = 3;

const TAB = "flex items-center border-b-2 px-1 text-xs sm:px-2.5 sm:text-sm";
const CURRENT = "border-accent font-semibold text-ink";
const OTHER = "border-transparent text-muted hover:text-ink";

export const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_ICONS = { system: "auto", light: "sun", dark: "moon" } as const;

export function Header({ away, onHelp }: { away: boolean; onHelp: () => void }) {
  const { page } = useRoute();
  const { conversationId, left } = useChat();
  const theme = useTheme();
  const more = NAMES.slice(ALWAYS).find(([name]) => name === page);
  const always = more === undefined ? ALWAYS : ALWAYS - 1;
  return (
    <header className="flex h-11 shrink-0 items-center gap-1 border-b border-line bg-paper px-3 sm:gap-4">
      <a href={hrefOf("ask")} className="flex items-center gap-2 rounded-sm font-serif text-lg leading-none tracking-tight" aria-label={t("DocuMind, start page")}>
        <svg width="18" height="18" viewBox="0 0 32 32" aria-hidden="true">
          <path d="M6 4h10.5c6 0 10.5 4.6 10.5 12s-4.5 12-10.5 12H6z" fill="none" stroke="var(--accent)" strokeWidth="3" />
          <path d="M11.5 12.5h9.5M11.5 19h6" stroke="var(--accent)" strokeWidth="3" strokeLinecap="round" />
        </svg>
        <span className="max-sm:sr-only">{NAME}</span>
      </a>
      <nav aria-label={t("Pages")} className="flex h-full min-w-0 items-stretch">
        {NAMES.map(([name, label], at) => (
          <a
            key={name}
            href={name === "ask" ? hrefOf(name, conversationId ?? left) : hrefOf(name)}
            aria-current={page === name ? "page" : undefined}
            className={cx(TAB, page === name ? CURRENT : OTHER, at >= always && "max-lg:hidden")}
          >
            {t(label)}
          </a>
        ))}
        <ActionMenu
          label={t("More")}
          trigger={
            <button type="button" aria-current={more === undefined ? undefined : "page"} className={cx(TAB, more === undefined ? OTHER : CURRENT, "min-w-0 gap-1 lg:hidden")}>
              <span className="overflow-hidden whitespace-nowrap">{t(more?.[1] ?? "More")}</span>
              <span className={cx(more === undefined && "max-sm:hidden")}>
                <Icon name="chevron" size={11} />
              </span>
            </button>
          }
          actions={NAMES.slice(always).map(([name, label]) => [t(label), hrefOf(name)] as const)}
        />
      </nav>
      <span className="flex-1" />
      <InUse away={away} />
      <div className="flex shrink-0 items-center">
        <IconButton icon={THEME_ICONS[theme]} label={t("Theme: {theme}", { theme: t(THEME_NAMES[theme]) })} onClick={() => setTheme(NEXT_THEME[theme])} className="max-sm:hidden" />
        <a
          href={hrefOf("settings")}
          aria-label={t("Settings")}
          title={t("Settings")}
          aria-current={page === "settings" ? "page" : undefined}
          className={cx("inline-flex size-7 pointer-coarse:size-9 items-center justify-center rounded-md hover:bg-sunken hover:text-ink", page === "settings" ? "bg-accent-soft text-accent" : "text-muted")}
        >
          <Icon name="gear" />
        </a>
        <IconButton icon="help" label={t("Help")} onClick={onHelp} />
      </div>
    </header>
  );
}

/** Who answers right now, next to a dot that says whether the server does; a click leads to where it is changed. */
function InUse({ away }: { away: boolean }) {
  const { data } = useQuery(health);
  const { generator, embedder } = modelsInUse(data);
  const slow = generator?.startsWith("extractive") === true && data?.hosts.some((host) => host.busy) === true;
  const state = away ? t("Server away") : generator === null ? t("Starting") : slow ? t("Quotes, the model is slow") : answeredBy(generator);
  const why = data?.generator_why ? ` (${data.generator_why})` : "";
  const title = generator === null ? state : t("{state}: answers by {generator}, search by meaning with {embedder}", { state, generator: `${generator}${why}`, embedder: embedder ?? t("nothing yet") });
  return (
    <a href={hrefOf("settings")} className="flex min-h-7 min-w-12 shrink-[999] items-center gap-1.5 rounded-sm text-xs text-muted hover:text-ink" title={title}>
      <span className={cx("size-2 shrink-0 rounded-full", away ? "bg-bad" : generator === null ? "bg-warn" : "bg-good")} aria-hidden="true" />
      <span className="truncate max-sm:hidden">{state}</span>
      <span className="max-w-24 truncate sm:hidden">{state.split(",")[0]}</span>
    </a>
  );
}
