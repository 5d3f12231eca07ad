import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";
import type { JobRecord } from "@/api/types";
import { batchesOf, JobsSection } from "@/features/status/jobs-section";

const job: JobRecord = {
  id: "j1",
  kind: "reembed",
  library: "papers",
  state: "done",
  done: 57,
  total: 57,
  unit: "questions",
  eta_s: null,
  errors: [],
  files: [],
  result: { outcome: "kept", reason: "the new vectors find less; the old ones serve on" },
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:10Z",
};

test("a finished job says why it ended as it did", () => {
  const client = new QueryClient();
  client.setQueryData(["jobs"], { jobs: [job] });
  const html = renderToString(
    <QueryClientProvider client={client}>
      <JobsSection />
    </QueryClientProvider>,
  );
  expect(html).toContain("the new vectors find less");
});

test("the jobs of a folder are one row, what failed or runs has its own", () => {
  const file = (id: string, change: Partial<JobRecord> = {}): JobRecord => ({ ...job, id, kind: "ingest", result: null, ...change });
  const jobs = [
    file("running", { state: "running" }),
    file("a"),
    file("vectors", { kind: "backfill" }),
    file("b"),
    file("bad", { errors: ["damaged"] }),
    file("c"),
    file("yesterday", { updated_at: "2025-12-31T00:00:00Z" }),
  ];
  expect(batchesOf(jobs).map((batch) => batch.map((one) => one.id))).toEqual([["running"], ["a", "b", "c"], ["vectors"], ["bad"], ["yesterday"]]);
});
