import { apiKey, keyRefused } from "@/api/key";
import type { Problem } from "@/api/types";
import { t } from "@/lib/language";
import { problemWords } from "@/lib/server-words";

/** A reply that says no, with the server's problem body. */
export class ApiError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problemWords(problem.code, problem.detail || problem.title));
    this.name = "ApiError";
    this.problem = problem;
  }
}

/** No reply at all: the server is away. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super(t("The server does not answer; try again when it is back."), { cause });
    this.name = "Unreachable";
  }
}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

/** Address of a server path, relative to where the page is mounted (ROOT_PATH). Null and empty parameters are left out. */
export function address(path: string, query: Query = {}): string {
  const url = new URL(path.replace(/^\//, ""), new URL(".", document.baseURI));
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) url.searchParams.append(name, String(one));
  }
  return url.href;
}

export function authorization(): Record<string, string> {
  const key = apiKey();
  return key === null ? {} : { "X-API-Key": key };
}

/** The problem that a failed reply carries; a reply of another shape (a proxy's page) becomes one. */
export function problemOf(status: number, body: string): Problem {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null && "detail" in value && "code" in value) return value as Problem;
  } catch {
    // Not JSON: fall through.
  }
  return {
    type: "about:blank",
    title: `HTTP ${status}`,
    status,
    detail: t("The server answered {status} without saying why.", { status: String(status) }),
    code: "unknown",
    retryable: status >= 500,
    request_id: "",
  };
}

/** fetch with the key; failures become ApiError or Unreachable. Aborts pass through. */
export async function send(path: string, init: RequestInit = {}, query: Query = {}): Promise<Response> {
  let response: Response;
  try {
    const headers = { ...authorization(), ...(init.headers as Record<string, string> | undefined) };
    response = await fetch(address(path, query), { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable(error);
  }
  if (response.ok) return response;
  const problem = problemOf(response.status, await response.text());
  if (response.status === 401) keyRefused();
  throw new ApiError(problem);
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await send(path, signal ? { signal } : {}, query);
  return (await response.json()) as T;
}

export async function call<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, query: Query = {}): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  const response = await send(path, init, query);
  return (response.status === 204 ? undefined : await response.json()) as T;
}
