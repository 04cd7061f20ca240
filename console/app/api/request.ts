/** Calls the gateway. Every failure is one of three: a refusal with its code, no connection, or a login that has ended. */
import { formatJson, parseJson } from "./json.ts";

/** A response that is not a success, with the fields of its problem+json. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, body: { code?: string; title?: string; detail?: string }, retryAfter: string | null) {
    super(body.detail ?? body.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.retryAfterSeconds = Number(retryAfter) || undefined;
  }
}

/** The gateway did not answer. It is unknown whether an act took effect. */
export class NoAnswer extends Error {}

export const isRefusal = (error: unknown, ...codes: readonly (string | number)[]): error is Refusal =>
  error instanceof Refusal && (codes.includes(error.status) || codes.includes(error.code));

interface Options {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  /** The Idempotency-Key of an act. */
  readonly key?: string;
  readonly signal?: AbortSignal;
}

const timeoutMs = 15_000;

export async function request<T>(path: string, { method = "GET", body, key, signal }: Options = {}): Promise<T> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const send = async () => {
    const response = await fetch(path, {
      method,
      headers: {
        accept: "application/json",
        "accept-language": document.documentElement.lang,
        "x-todoke-request": "1",
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key }),
      },
      ...(body !== undefined && { body: formatJson(body) }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return { response, text: await response.text() };
  };
  const { response, text } = await send().catch((error) => {
    if (signal?.aborted) throw error;
    throw new NoAnswer("no answer", { cause: error });
  });
  const value = parseBody(text);
  if (response.ok) return value as T;
  if (response.status === 401) logIn();
  throw new Refusal(response.status, (value ?? {}) as object, response.headers.get("retry-after"));
}

function parseBody(text: string): unknown {
  try {
    return text === "" ? undefined : parseJson(text);
  } catch {
    return undefined;
  }
}

/** The login returns to the page as it is now: its filters are in the address. */
function logIn(): void {
  const { pathname, search } = location;
  location.assign(`/login?returnTo=${encodeURIComponent(pathname + search)}`);
}

/** A path with a query. Values that are empty are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/** A path whose parameters are escaped: path`/v1/users/${id}`. */
export const path = (parts: TemplateStringsArray, ...values: readonly string[]): string =>
  String.raw({ raw: parts }, ...values.map(encodeURIComponent));
