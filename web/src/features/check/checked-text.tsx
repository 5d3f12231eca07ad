import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { reportOf } from "@/api/checks";
import type { CheckedSentence, CheckPlace, CheckReference, CheckReport, CheckVerdict } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button, IconButton } from "@/components/ui/button";
import { cx } from "@/components/ui/cx";
import { Failure } from "@/components/ui/states";
import { Tag } from "@/components/ui/tag";
import { useWorkspace } from "@/hooks/use-workspace";
import { changedWords } from "@/lib/changed";
import { LIBRARY_NAMES, modelName } from "@/lib/format";
import { type Message, t } from "@/lib/language";
import { saveAs } from "@/lib/save-as";
import { citationWords } from "@/lib/trust";

const VERDICTS: Record<CheckVerdict, { words: Message; tone: "good" | "bad" | "warn" | "plain"; title: Message }> = {
  supported: { words: "supported", tone: "good", title: "A place of the source says it" },
  unsure: { words: "unsure", tone: "warn", title: "A place may say it. Compare the words below" },
  contradicted: { words: "contradicted", tone: "bad", title: "A place says something else of the same thing" },
  not_found: { words: "not found", tone: "plain", title: "No place says it or denies it" },
  no_claim: { words: "claims nothing", tone: "plain", title: "A heading, a table head, code, a question or a lead-in" },
};
/** What the place of a sentence with this verdict does. */
const PLACES: Record<CheckVerdict, Message | null> = { supported: "holds it", unsure: "may say it", contradicted: "says otherwise", not_found: "the nearest", no_claim: null };
const FORMS = ["markdown", "html", "docx", "json"] as const;
type Form = (typeof FORMS)[number];
const FORM_NAMES: Record<Form, string> = { markdown: "Markdown", html: "HTML", docx: "Word", json: "JSON" };

interface Props {
  report: CheckReport;
  /** Which sentence is checked again. */
  checking: number | null;
  error: Error | null;
  onCheck: (at: number, edited: string) => void;
}

/** What a check found: counts, downloads, and each sentence with its place, to be changed and checked again by itself. */
export function CheckedText({ report, checking, error, onCheck }: Props) {
  const download = useMutation({ mutationFn: (form: Form) => save(report, form) });
  const [shown, setShown] = useState<CheckVerdict | null>(null);
  if (report.sentences.length === 0) return <Banner>{t("There is no sentence in it.")}</Banner>;
  return (
    <section aria-label={t("Checked text")} className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p role="status" className="flex flex-wrap gap-1.5">
          {(Object.keys(VERDICTS) as CheckVerdict[])
            .filter((verdict) => report.counts[verdict] > 0)
            .map((verdict) => (
              <button
                key={verdict}
                type="button"
                aria-pressed={shown === verdict}
                title={shown === verdict ? t("Show all sentences") : t("Show these alone")}
                onClick={() => setShown(shown === verdict ? null : verdict)}
                className={cx("cursor-pointer rounded-md", shown === verdict && "outline-2 outline-accent", shown !== null && shown !== verdict && "opacity-60")}
              >
                <Tag tone={VERDICTS[verdict].tone}>
                  {report.counts[verdict]} {t(VERDICTS[verdict].words)}
                </Tag>
              </button>
            ))}
        </p>
        <p className="flex items-center gap-1 text-xs text-muted">
          {t("Download")}
          {FORMS.map((form) => (
            <Button key={form} look="quiet" onClick={() => download.mutate(form)}>
              {FORM_NAMES[form]}
            </Button>
          ))}
        </p>
      </div>
      {report.judge_failed !== null && (
        <Banner tone="warn">
          {report.judge === null ? t("The reader decided: {why}", { why: report.judge_failed }) : t("{model} failed: {why}", { model: modelName(report.judge), why: report.judge_failed })}
        </Banner>
      )}
      {error !== null && <Failure error={error} what={t("The check failed.")} />}
      {download.isError && <Failure error={download.error} what={t("That did not work.")} />}
      <ol className="rounded-lg border border-line bg-surface">
        {report.sentences.map(
          (sentence, at) =>
            (shown === null || sentence.verdict === shown) && (
              <SentenceRow key={`${sentence.start}/${sentence.text}`} sentence={sentence} report={report} busy={checking === at} onCheck={(edited) => onCheck(at, edited)} />
            ),
        )}
      </ol>
      {report.references.length > 0 && <References references={report.references} />}
    </section>
  );
}

const STATES: Record<CheckReference["state"], { words: Message; tone: "good" | "warn" | "plain" }> = {
  found: { words: "found", tone: "good" },
  differs: { words: "found with differences", tone: "warn" },
  not_there: { words: "not in the library", tone: "plain" },
};

/** The text's own list of references, each with the document that it means. */
function References({ references }: { references: readonly CheckReference[] }) {
  const { read } = useWorkspace();
  return (
    <section aria-label={t("References")} className="flex flex-col gap-2">
      <h2 className="text-sm font-semibold">{t("References")}</h2>
      <p className="text-xs text-muted">{t("A sentence that cites one of them is held against that document first.")}</p>
      <ul className="rounded-lg border border-line bg-surface">
        {references.map(({ start, text, state, title, doc_id, differs }) => (
          <li key={start} className="grid gap-x-4 gap-y-1 border-b border-line px-4 py-2 text-sm last:border-b-0 sm:grid-cols-[8rem_1fr]">
            <div>
              <Tag tone={STATES[state].tone}>{t(STATES[state].words)}</Tag>
            </div>
            <div className="min-w-0 [overflow-wrap:anywhere]">
              <p>{text}</p>
              {differs.length > 0 && <p className="text-xs text-muted">{t("In the library: {what}", { what: differs.join("; ") })}</p>}
              {doc_id !== null && (
                <Button look="quiet" icon="open" onClick={() => read({ library: "papers", doc_id, title: title ?? doc_id, revision: null, start: 0, end: 0, page: null })}>
                  {title ?? doc_id}
                </Button>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function SentenceRow({ sentence, report, busy, onCheck }: { sentence: CheckedSentence; report: CheckReport; busy: boolean; onCheck: (edited: string) => void }) {
  const { judge, check_by } = report;
  const [edited, setEdited] = useState<string | null>(null);
  const { words, tone, title } = VERDICTS[sentence.verdict];
  const best = sentence.citations[0];
  return (
    <li className="grid gap-x-4 gap-y-1 border-b border-line px-4 py-3 last:border-b-0 sm:grid-cols-[8rem_1fr]">
      <div className="flex flex-col items-start gap-1">
        <Tag tone={tone} title={t(title)}>
          {t(words)}
        </Tag>
        {judge !== null && sentence.verdict !== "no_claim" && (
          <span className="text-2xs text-muted">
            {modelName(judge)}: {sentence.judged === null ? t("no clear reply") : sentence.judged === "supported" ? t("supported") : t("not supported")}
            {check_by !== "reader" && sentence.by_reader !== sentence.verdict && `; ${t("the reader: {verdict}", { verdict: t(VERDICTS[sentence.by_reader].words) })}`}
          </span>
        )}
      </div>
      <div className="min-w-0">
        {edited === null ? (
          <div className="flex items-start gap-2">
            <p className={cx("min-w-0 flex-1 font-serif text-[0.9375rem] leading-6 [overflow-wrap:anywhere]", sentence.verdict === "no_claim" && "text-muted")}>
              <Marked text={sentence.text.replace(/^#{1,6} /, "")} beside={comparesWords(sentence) ? best?.quote : undefined} />
            </p>
            <IconButton icon="edit" label={t("Change this sentence")} onClick={() => setEdited(sentence.text)} />
          </div>
        ) : (
          <form
            className="mb-1 flex flex-col gap-1.5"
            onSubmit={(event) => {
              event.preventDefault();
              if (edited.trim() !== "") onCheck(edited.trim());
              // A sentence that came back as it was has the same row.
              if (edited.trim() === sentence.text) setEdited(null);
            }}
          >
            <textarea
              aria-label={t("Changed sentence")}
              autoFocus
              rows={2}
              value={edited}
              onChange={(event) => setEdited(event.target.value)}
              className="block field-sizing-content w-full resize-none rounded-md border border-line-strong bg-surface px-2.5 py-1.5 font-serif text-[0.9375rem] leading-6 text-ink"
            />
            <span className="flex gap-1.5">
              <Button type="submit" look="primary" icon="check" disabled={busy || edited.trim() === ""}>
                {t("Check this sentence")}
              </Button>
              <Button onClick={() => setEdited(null)}>{t("Cancel")}</Button>
            </span>
          </form>
        )}
        {best !== undefined && <Place place={best} words={PLACES[sentence.verdict]} lead="" beside={comparesWords(sentence) ? sentence.text : undefined} />}
        {sentence.better !== null && <Place place={sentence.better} words={PLACES.supported} lead={`${t("A better source:")} `} />}
      </div>
    </li>
  );
}

/** Whether what differs between a sentence and its place tells something. */
function comparesWords({ verdict }: CheckedSentence): boolean {
  return verdict === "contradicted" || verdict === "unsure";
}

/** A text, the words marked that the one beside it has not. */
function Marked({ text, beside }: { text: string; beside: string | undefined }) {
  if (beside === undefined) return text;
  return changedWords(text, beside).map(({ text: piece, changed }, at) => (changed ? (<mark key={at} className="text-ink">{piece}</mark>) : piece));
}

function Place({ place, words, lead, beside }: { place: CheckPlace; words: Message | null; lead: string; beside?: string | undefined }) {
  const { read } = useWorkspace();
  const { library, doc_id, title } = place;
  return (
    <div className="mt-1 border-l-2 border-line-strong pl-3 text-sm text-muted">
      <p className="line-clamp-4 [overflow-wrap:anywhere]">
        {lead !== "" && <strong className="font-semibold text-ink">{lead}</strong>}“<Marked text={place.quote} beside={beside} />”
      </p>
      <p className="flex flex-wrap items-center gap-1 text-2xs" title={citationWords(place.support)}>
        <span>{[title ?? t("in the source"), library === null ? "" : t(LIBRARY_NAMES[library]), words === null ? "" : t(words)].filter(Boolean).join(" · ")}</span>
        {library !== null && doc_id !== null && (
          <Button
            look="quiet"
            icon="open"
            onClick={() => read({ library, doc_id, title: title ?? doc_id, revision: place.revision, start: place.start, end: place.end, page: null })}
          >
            {t("Open")}
          </Button>
        )}
      </p>
    </div>
  );
}

async function save(report: CheckReport, form: Form): Promise<void> {
  if (form === "json") saveAs(new Blob([JSON.stringify(report, null, 2)], { type: "application/json" }), "check.json");
  else saveAs(await reportOf(report, form), `check.${form === "markdown" ? "md" : form}`);
}
