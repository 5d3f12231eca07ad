import { Page } from "@/components/ui/section";
import { DiagnosticsSection } from "./diagnostics-section";
import { FsckSection } from "./fsck-section";
import { JobsSection } from "./jobs-section";
import { LedgerSection } from "./ledger-section";
import { LibrariesSection } from "./libraries-section";
import { ModelsSection } from "./models-section";

/** What the server holds, what it is doing, and whether it is well. */
export function StatusPage() {
  return (
    <Page title="Status" lead="Libraries and their search indexes, work under way, models, and a check of the index against the catalog.">
      <LibrariesSection />
      <JobsSection />
      <ModelsSection />
      <FsckSection />
      <LedgerSection />
      <DiagnosticsSection />
    </Page>
  );
}
