import { useQuery } from "@tanstack/react-query";
import { evaluations } from "@/api/queries";
import { Select } from "@/components/ui/field";
import { Page } from "@/components/ui/section";
import { Empty, Failure, Skeleton } from "@/components/ui/states";
import { goTo } from "@/hooks/use-route";
import { t } from "@/lib/language";
import { ReportView } from "./report-view";
import { RunPanel } from "./run-panel";

/** Reports of the evaluation harness: arms, intervals, times, and every question. */
export function EvaluatePage({ reportId }: { reportId: string | null }) {
  const list = useQuery(evaluations);
  const reports = list.data?.evaluations ?? [];
  const shown = reportId ?? reports[0]?.id ?? null;
  return (
    <Page
      wide
      title={t("Evaluate")}
      lead={t("Does the search find what your documents say? A run asks questions whose answers are known and counts. The figures below the first sentence are for those who tune the search.")}
      aside={
        shown !== null &&
        reports.length > 0 && (
          <Select label={t("Report")} value={shown} options={reports.map((report) => ({ value: report.id, label: report.title === "" ? report.id : report.title }))} onValue={(id) => goTo("evaluate", id)} className="max-w-80" />
        )
      }
    >
      <RunPanel />
      {list.isPending && <Skeleton lines={6} />}
      {list.isError && list.data === undefined && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && shown === null && <Empty title={t("No reports yet")}>{t("Start a run above, or on the command line: documind evaluate ablation.")}</Empty>}
      {shown !== null && <ReportView key={shown} id={shown} />}
    </Page>
  );
}
