import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "@/api/http";
import { finished, job, jobs } from "@/api/queries";
import type { AnswerCase, EvaluationKind, EvaluationRequest, JobRecord, Library } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button, FileButton } from "@/components/ui/button";
import { Segmented, Select } from "@/components/ui/field";
import { Meter } from "@/components/ui/meter";
import { Section } from "@/components/ui/section";
import { Failure } from "@/components/ui/states";
import { useWorkspace } from "@/hooks/use-workspace";
import { answerCases } from "@/lib/answer-set";
import { optionsOf, progressWords } from "@/lib/format";
import { type Message, t } from "@/lib/language";

const KINDS: readonly { value: EvaluationKind; label: Message; says: Message }[] = [
  { value: "ablation", label: "Steps", says: "Takes each step of the search away and compares with plain fusion." },
  { value: "retrieval", label: "Search", says: "Compares the search as it is set with words alone, meaning alone and plain fusions." },
  { value: "answers", label: "Answers", says: "Answers the questions of a set and measures the answers against what the set expects." },
];

/** Start an evaluation of the indexed documents and watch it. */
export function RunPanel() {
  const client = useQueryClient();
  const [kind, setKind] = useState<EvaluationKind>("ablation");
  const { library: shelf } = useWorkspace();
  const [library, setLibrary] = useState<Library>(shelf === "public" ? "public" : "papers");
  const [cases, setCases] = useState<AnswerCase[]>([]);
  const [unread, setUnread] = useState<string | null>(null);
  const start = useMutation({ mutationFn: (request: EvaluationRequest) => call<JobRecord>("POST", "api/v1/evaluations", request) });
  const stop = useMutation({ mutationFn: (id: string) => call<JobRecord>("DELETE", `api/v1/jobs/${encodeURIComponent(id)}`) });
  const list = useQuery(jobs);
  const earlier = list.data?.jobs.find((record) => record.kind === "evaluation" && !finished(record));
  const id = start.data?.id ?? earlier?.id ?? null;
  const watched = useQuery({ ...job(id ?? ""), enabled: id !== null });
  const over = finished(watched.data);
  useEffect(() => {
    if (over) void client.invalidateQueries({ queryKey: ["evaluations"] });
  }, [over, client]);
  const running = watched.data !== undefined && !over;
  const says = KINDS.find((one) => one.value === kind)?.says;
  const lacksCases = kind === "answers" && cases.length === 0;

  async function read(file: File | undefined): Promise<void> {
    setCases([]);
    setUnread(null);
    if (file === undefined) return;
    try {
      setCases(answerCases(await file.text()));
    } catch (error) {
      setUnread(error instanceof Error ? error.message : t("The file could not be read."));
    }
  }

  return (
    <Section
      title={t("Run")}
      aside={
        <Button icon="play" disabled={start.isPending || running || lacksCases} onClick={() => start.mutate(kind === "answers" ? { kind, cases } : { kind, library, cases })}>
          {t("Start a run")}
        </Button>
      }
    >
      <div className="flex flex-wrap items-center gap-3">
        <Segmented label={t("What to compare")} value={kind} options={KINDS.map((one) => ({ value: one.value, label: t(one.label) }))} onValue={setKind} />
        {kind !== "answers" && (
          <Select
            label={t("Library of the run")}
            value={library}
            options={optionsOf({ papers: "My documents", public: "Public" })}
            onValue={setLibrary}
          />
        )}
        <FileButton label={t("Answer set")} accept=".jsonl,application/jsonl,application/json" onFile={(file) => void read(file)} />
      </div>
      <p className="mt-2 text-sm text-muted">
        {says !== undefined && t(says)} {asked(kind, cases.length)}
      </p>
      {unread !== null && (
        <Banner tone="bad" className="mt-2">
          {unread}
        </Banner>
      )}
      {start.isError && <Failure error={start.error} what={t("It did not start.")} />}
      {running && (
        <div className="mt-2 flex items-end gap-3">
          <div className="min-w-0 flex-1">
            <Meter value={watched.data.total === null || watched.data.total === 0 ? null : watched.data.done / watched.data.total} label={t("Progress of the run")} />
            <p className="mt-1 text-xs text-muted tabular-nums">
              {watched.data.state === "paused" && `${t("paused")}: `}
              {progressWords(watched.data)}
            </p>
          </div>
          <Button look="quiet" icon="close" disabled={stop.isPending} onClick={() => id !== null && stop.mutate(id)}>
            {t("Cancel the run")}
          </Button>
        </div>
      )}
      {over && watched.data?.state === "failed" && (
        <Banner tone="bad" className="mt-2">
          {watched.data.errors[0] ?? t("It failed without a reason")}
        </Banner>
      )}
      {over && watched.data?.state === "cancelled" && (
        <Banner tone="info" className="mt-2">
          {t("The run was cancelled.")}
        </Banner>
      )}
      {over && watched.data?.state === "done" && (
        <Banner tone="good" className="mt-2">
          {t("The run is done; its report is below.")}
        </Banner>
      )}
    </Section>
  );
}

/** Where the questions come from. */
function asked(kind: EvaluationKind, cases: number): string {
  if (cases > 0) return t("The {n} questions of the set are asked.", { n: cases });
  return kind === "answers" ? t("Choose an answer set: one JSON object a line.") : t("Questions are made from single sentences of your documents, unless you choose an answer set.");
}
