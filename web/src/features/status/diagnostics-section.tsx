import { useQuery } from "@tanstack/react-query";
import { diagnostics } from "@/api/queries";
import { Button } from "@/components/ui/button";
import { Facts } from "@/components/ui/facts";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { useCopied } from "@/hooks/use-copied";
import { factsOf } from "@/lib/facts";
import { t } from "@/lib/language";

/** The data that support asks for, to read and to copy. */
export function DiagnosticsSection() {
  const about = useQuery(diagnostics);
  const { state, copy } = useCopied();
  return (
    <Section
      title={t("Diagnostics")}
      aside={
        about.data !== undefined && (
          <Button look="quiet" icon="copy" onClick={() => copy(JSON.stringify(about.data, null, 2))}>
            {state === "copied" ? t("Copied") : state === "failed" ? t("The browser does not allow copying here") : t("Copy as JSON")}
          </Button>
        )
      }
    >
      {about.isPending && <Skeleton lines={5} />}
      {about.isError && about.data === undefined && <Failure error={about.error} onRetry={() => void about.refetch()} />}
      {about.data !== undefined && (
        <details>
          <summary className="text-sm text-muted">{t("Figures that a person who helps you may ask for")}</summary>
          <div className="mt-3">
            <Facts facts={factsOf(about.data, ["libraries", "watermarks", "lags"])} />
          </div>
        </details>
      )}
    </Section>
  );
}
