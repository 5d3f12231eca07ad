import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { type CheckProgress, checkAloud, checkText } from "@/api/checks";
import { models } from "@/api/queries";
import type { CheckRequest } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Segmented, Select } from "@/components/ui/field";
import { Banner } from "@/components/ui/banner";
import { Meter } from "@/components/ui/meter";
import { Page } from "@/components/ui/section";
import { Empty, Failure, Skeleton } from "@/components/ui/states";
import { useDraft } from "@/hooks/use-draft";
import { useWorkspace } from "@/hooks/use-workspace";
import { LIBRARIES, optionsOf, progressWords } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { withSentence } from "@/lib/recheck";
import { CheckedText } from "./checked-text";
import { TextInput } from "./text-input";

const NO_JUDGE = "";
type CheckBy = NonNullable<CheckRequest["check_by"]>;
const DECIDERS: Record<CheckBy, Message> = { reader: "The reader decides", model: "The model decides", both: "Supported where both say so" };

/** Any text, sentence by sentence, against the documents or against one source. */
export function CheckPage() {
  const { library, choose } = useWorkspace();
  const { text, source, report, change } = useDraft();
  const setSource = (value: string | null): void => change({ source: value });
  const [judge, setJudge] = useState(NO_JUDGE);
  const [decides, setDecides] = useState<CheckBy>("reader");
  const { data } = useQuery(models);
  const [progress, setProgress] = useState<Underway | null>(null);
  const stop = useRef<AbortController | null>(null);
  const against = source === null || source.trim() === "" ? null : source;
  const asked = (of: string): CheckRequest => ({ text: of, library, against, ...(judge === NO_JUDGE ? {} : { judge, check_by: decides }) });
  const check = useMutation({
    mutationFn: async () => {
      const { signal } = (stop.current = new AbortController());
      try {
        for await (const said of checkAloud(asked(text), signal)) {
          if ("report" in said) change({ report: said.report });
          else setProgress((was) => underway(was, said.progress));
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    onMutate: () => {
      change({ report: null });
      setProgress(null);
    },
  });
  const recheck = useMutation({
    mutationFn: ({ edited }: { at: number; edited: string }) => checkText(asked(edited)),
    onSuccess: (found, { at, edited }) => {
      if (report !== null) change(withSentence({ text, report }, at, edited, found));
    },
  });
  const judges = [...new Set([...(data?.installed.map((one) => one.name) ?? [])])];
  return (
    <Page title={t("Check")} lead={t("Every sentence of a text is held against your documents: supported, unsure, contradicted or not found, with the place. Nothing is stored.")}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          check.mutate();
        }}
      >
        <TextInput label={t("Text to check")} value={text} onValue={(value) => change({ text: value })} rows={8} />
        {source === null ? (
          <Button look="quiet" icon="plus" className="self-start" onClick={() => setSource("")}>
            {t("Check against one source")}
          </Button>
        ) : (
          <div className="flex flex-col gap-1">
            <TextInput label={t("The source")} value={source} onValue={setSource} rows={5} />
            <p className="flex items-center gap-2 text-xs text-muted">
              {t("The text is checked against this source; where it does not hold, a better one is looked for in the library.")}
              <Button look="quiet" icon="close" onClick={() => setSource(null)}>
                {t("No source")}
              </Button>
            </p>
          </div>
        )}
        <div className="flex flex-wrap items-center gap-2">
          <Segmented
            label={t("Library")}
            value={library}
            onValue={choose}
            options={optionsOf(LIBRARIES)}
          />
          {judges.length > 0 && (
            <Select
              label={t("Second verdict")}
              value={judge}
              onValue={setJudge}
              options={[{ value: NO_JUDGE, label: t("No second verdict") }, ...judges.map((name) => ({ value: name, label: t("Second verdict by {model}", { model: name }) }))]}
            />
          )}
          {judge !== NO_JUDGE && <Select label={t("Who decides")} value={decides} onValue={setDecides} options={optionsOf(DECIDERS)} />}
          <span className="flex-1" />
          <Button type="submit" look="primary" icon="check" disabled={text.trim() === "" || check.isPending}>
            {t("Check")}
          </Button>
        </div>
      </form>
      {check.isPending && (
        <div className="flex items-center gap-3">
          <Meter value={progress === null ? null : progress.done / progress.of} label={t("Progress of the check")} className="flex-1" />
          <span className="text-xs text-muted tabular-nums">{progress !== null && saying(progress)}</span>
          <Button look="quiet" onClick={() => stop.current?.abort()}>
            {t("Stop")}
          </Button>
        </div>
      )}
      {check.isPending && report === null && <Skeleton lines={8} />}
      {check.isPending && report !== null && <Banner>{t("{model} reads the sentences; until then these are the reader’s verdicts.", { model: judge })}</Banner>}
      {check.isError && <Failure error={check.error} onRetry={() => check.mutate()} what={t("The check failed.")} />}
      {check.isIdle && report === null && <Empty title={t("Paste a text, or open a file")}>{t("A draft, a summary, a model’s answer: each sentence gets its verdict and the words it rests on.")}</Empty>}
      {report !== null && !check.isError && (
        <CheckedText report={report} checking={recheck.isPending ? recheck.variables.at : null} error={recheck.error} onCheck={(at, edited) => recheck.mutate({ at, edited })} />
      )}
    </Page>
  );
}


/** Progress, and when its first sentence was read. */
type Underway = CheckProgress & { since: number };

function underway(was: Underway | null, now: CheckProgress): Underway {
  return { ...now, since: was?.by === now.by ? was.since : Date.now() };
}

function saying({ done, of, since }: Underway): string {
  const left = done === 0 ? 0 : ((Date.now() - since) / 1000 / done) * (of - done);
  return progressWords({ done, total: of, unit: "sentences", eta_s: left < LONG_S ? null : left });
}

/** Seconds from which it is said how long a check still takes. */
const LONG_S = 3;
