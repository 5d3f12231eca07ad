import type { ModelsResponse } from "@/api/types";

export interface InstalledModel {
  name: string;
  size: number | null;
  loaded: boolean;
  inUse: boolean;
  /** It writes answers and does not write them now. */
  offered: boolean;
}

/** Installed models with what they are doing. */
export function installedModels(body: ModelsResponse | undefined): InstalledModel[] {
  if (body === undefined) return [];
  const loaded = new Set(body.loaded);
  const used = new Set(Object.values(body.in_use).map(bare));
  const answers = bare(body.in_use["answers"] ?? "");
  return body.installed.map((model) => ({
    name: model.name,
    size: model.size_bytes,
    loaded: loaded.has(model.name),
    inUse: used.has(bare(model.name)),
    offered: model.chats && bare(model.name) !== answers,
  }));
}

/** Names of the installed models that can answer; embedding models are left out. */
export function chatModels(body: ModelsResponse | undefined): string[] {
  return (body?.installed ?? []).filter((model) => model.chats).map((model) => model.name);
}

/** What the test of a model found, the answering one where none is named; before a test what is given. */
export function adviceOn(model: string | null, body: ModelsResponse | undefined, untested: string): string {
  const wanted = bare(model ?? body?.in_use["answers"] ?? "");
  return body?.tests.find((test) => bare(test.model) === wanted)?.advice ?? untested;
}

/** `ollama:llama3.2:latest` and `llama3.2` are one model. */
function bare(name: string): string {
  return name.replace(/^ollama:/, "").replace(/:latest$/, "");
}

/** Who answers and who embeds, from GET /health or /diagnostics; null while unknown. */
export function modelsInUse(body: { generator: string | null; embedder: string | null } | undefined): { generator: string | null; embedder: string | null } {
  return { generator: body?.generator ?? null, embedder: body?.embedder ?? null };
}
