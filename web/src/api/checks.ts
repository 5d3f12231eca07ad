import { call, send } from "@/api/http";
import type { CheckReport, CheckRequest, FileText } from "@/api/types";

/** The verdict of every sentence of a text. */
export function checkText(asked: CheckRequest): Promise<CheckReport> {
  return call<CheckReport>("POST", "api/v1/check", asked);
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
