import { Page } from "@/components/ui/section";
import { t } from "@/lib/language";
import { DiagnosticsSection } from "./diagnostics-section";
import { FsckSection } from "./fsck-section";
import { JobsSection } from "./jobs-section";
import { LedgerSection } from "./ledger-section";
import { LibrariesSection } from "./libraries-section";

/** What the server holds, what it is doing, and whether it is well. */
export function StatusPage() {
  return (
    <Page title={t("Status")} lead={t("What the server holds and what it is doing. All is well where nothing here is yellow or red; the rest is for the person who looks after it.")}>
      <LibrariesSection />
      <JobsSection />
      <FsckSection />
      <LedgerSection />
      <DiagnosticsSection />
    </Page>
  );
}
