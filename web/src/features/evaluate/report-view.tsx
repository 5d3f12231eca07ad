import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { send } from "@/api/http";
import { evaluation } from "@/api/queries";
import type { EvaluationReport, ReportExperiment } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Facts } from "@/components/ui/facts";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { Tag } from "@/components/ui/tag";
import { fixed, milliseconds } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { tally } from "@/lib/scorecard";
import { saveAs } from "@/lib/save-as";
import { ArmDiff } from "./arm-diff";
import { IntervalChart } from "./interval-chart";
import { LatencyChart } from "./latency-chart";
import { ScorecardTable } from "./scorecard-table";

/** A p-value under this, corrected over all arms, tells two arms apart. */
const LEVEL = 0.05;

export function ReportView({ id }: { id: string }) {
  const report = useQuery(evaluation(id));
  if (report.isPending) return <Skeleton lines={10} />;
  if (report.isError) return <Failure error={report.error} onRetry={() => void report.refetch()} />;
  const { data } = report;
  return (
    <>
      <div>
        <div className="flex flex-wrap items-center justify-between gap-2">
          <h2 className="font-serif text-lg">{data.title}</h2>
          <Downloads id={id} />
        </div>
        {data.remarks.map((remark) => (
          <p key={remark} className="mt-1 max-w-prose text-sm">
            {remark}
          </p>
        ))}
      </div>
      {data.experiments.map((experiment) => (
        <ExperimentView key={experiment.collection} experiment={experiment} report={data} />
      ))}
      {Object.keys(data.figures).length > 0 && (
        <Section title={t("Figures")}>
          <Facts facts={Object.entries(data.figures).map(([name, value]) => [name, String(Number(value.toPrecision(4)))] as const)} />
        </Section>
      )}
      <p className="text-2xs text-muted [overflow-wrap:anywhere]">
        {t("Made from {git}, settings {settings}, index {index}, seed {seed}. Intervals are 95 % paired bootstrap, p-values paired permutation tests with Holm's correction.", {
          git: data.provenance.git_sha ? `git ${data.provenance.git_sha.slice(0, 12)}` : "git –",
          settings: data.provenance.settings_hash,
          index: data.provenance.fingerprint,
          seed: String(data.provenance.seed),
        })}
      </p>
    </>
  );
}

const FORMATS = [
  ["md", "Markdown"],
  ["csv", "CSV"],
  ["json", "JSON"],
  ["html", "HTML"],
] as const;

/** The report as files; fetched rather than linked to, because a link carries no key. */
function Downloads({ id }: { id: string }) {
  const fetched = useMutation({
    mutationFn: async (kind: string) => {
      const reply = await send(`api/v1/evaluations/${encodeURIComponent(id)}/report.${kind}`);
      saveAs(await reply.blob(), `evaluation-${id}.${kind}`);
    },
  });
  return (
    <div className="flex flex-wrap items-center gap-1">
      {FORMATS.map(([kind, label]) => (
        <Button key={kind} look="quiet" disabled={fetched.isPending} onClick={() => fetched.mutate(kind)}>
          {label}
        </Button>
      ))}
      {fetched.isError && <Failure error={fetched.error} what={t("That did not work.")} />}
    </div>
  );
}

function ExperimentView({ experiment, report }: { experiment: ReportExperiment; report: EvaluationReport }) {
  const timings = report.timings[experiment.collection] ?? {};
  const shown = experiment.arms.find((arm) => arm.name === "configured" || arm.name === "default")?.name ?? experiment.baseline;
  const score = tally(experiment, shown);
  return (
    <Section
      title={experiment.collection}
      aside={
        <span className="text-xs text-muted tabular-nums">
          {t("{n} questions", { n: experiment.questions })}, {t("{n} documents", { n: experiment.passages })}
        </span>
      }
    >
      {score.questions > 0 && (
        <p className="mb-4 text-base">
          {tx("Search found the right passage for {found}, in the first place for {first}.", { found: <strong className="font-semibold">{t("{found} of {n} test questions", { found: score.found, n: score.questions })}</strong>, first: score.first })}
        </p>
      )}
      <div className="grid gap-x-8 gap-y-6 xl:grid-cols-2">
        <figure className="max-w-2xl min-w-0">
          <figcaption className="mb-2 text-xs font-semibold text-muted">{t("{measure}, 95 % intervals", { measure: experiment.measure })}</figcaption>
          <Scrolling label={t("Intervals")}>
            <IntervalChart experiment={experiment} />
          </Scrolling>
        </figure>
        <figure className="max-w-2xl min-w-0">
          <figcaption className="mb-2 text-xs font-semibold text-muted">{t("Quality against time")}</figcaption>
          <Scrolling label={t("Quality against time")}>
            <LatencyChart experiment={experiment} timings={timings} />
          </Scrolling>
        </figure>
      </div>
      <h3 className="mt-6 mb-2 text-xs font-semibold text-muted">{t("Against {arm}", { arm: experiment.baseline })}</h3>
      <Table caption={t("Comparisons with the baseline")} head={[t("Arm"), t("Difference"), t("95 % interval"), t("p (Holm)"), t("Time p50"), "p95", t("Verdict")]}>
        {experiment.comparisons.map((comparison) => (
          <tr key={comparison.arm}>
            <td>{comparison.arm}</td>
            <td>{signed(comparison.difference.mean)}</td>
            <td className="whitespace-nowrap text-muted">
              {t("{low} to {high}", { low: signed(comparison.difference.low), high: signed(comparison.difference.high) })}
            </td>
            <td>
              {fixed(comparison.p_holm, 4)} {comparison.p_holm <= LEVEL && <Tag tone={comparison.difference.mean > 0 ? "good" : "bad"}>{comparison.difference.mean > 0 ? t("better") : t("worse")}</Tag>}
            </td>
            <td>{time(timings[comparison.arm]?.p50_ms)}</td>
            <td>{time(timings[comparison.arm]?.p95_ms)}</td>
            <td className="min-w-56">{comparison.verdict}</td>
          </tr>
        ))}
      </Table>
      <h3 className="mt-6 mb-1 text-xs font-semibold text-muted">{t("Difference of two arms, question by question")}</h3>
      <ArmDiff experiment={experiment} />
      <h3 className="mt-6 mb-1 text-xs font-semibold text-muted">{t("Scorecard, where the arms differ most")}</h3>
      <ScorecardTable experiment={experiment} />
    </Section>
  );
}

/** A chart keeps a readable size; on a phone it scrolls. */
function Scrolling({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

function signed(value: number): string {
  return `${value >= 0 ? "+" : "−"}${fixed(Math.abs(value), 4)}`;
}

function time(ms: number | undefined): string {
  return ms === undefined ? "–" : milliseconds(ms);
}
