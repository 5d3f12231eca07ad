import { ApiError, call, send } from "@/api/http";
import { eventsOf } from "@/api/stream";
import type { CheckReport, CheckRequest, FileText, Problem } from "@/api/types";

/** The verdict of every sentence of a text. */
export function checkText(asked: CheckRequest): Promise<CheckReport> {
  return call<CheckReport>("POST", "api/v1/check", asked);
}

/** How many sentences are read, and by whom. */
export interface CheckProgress {
  done: number;
  of: number;
  by: "reader" | "model";
}

/** The same with its progress, and the reader's verdicts before those of a model. Aborting the signal ends the check. */
export async function* checkAloud(asked: CheckRequest, signal: AbortSignal): AsyncGenerator<{ progress: CheckProgress } | { report: CheckReport }> {
  for await (const { event, data } of eventsOf("api/v1/check", { ...asked, stream: true }, signal)) {
    const body = JSON.parse(data) as unknown;
    if (event === "error") throw new ApiError(body as Problem);
    yield event === "progress" ? { progress: body as CheckProgress } : { report: body as CheckReport };
  }
}

/** The text of a file, read by the server and not kept. */
export async function textOf(file: File): Promise<FileText> {
  const form = new FormData();
  form.append("file", file, file.name);
  const response = await send("api/v1/check/text", { method: "POST", body: form });
  return (await response.json()) as FileText;
}

export type ReportForm = "markdown" | "html" | "docx";

/** A checked text as a report for reading. */
export async function reportOf(report: CheckReport, format: ReportForm): Promise<Blob> {
  const init = { method: "POST", body: JSON.stringify(report), headers: { "Content-Type": "application/json" } };
  return (await send("api/v1/check/report", init, { format })).blob();
}
