/** The meaning of a service's response: a success, a refusal that is passed on, or a failure that names the service. */
import { Problem, type ProblemOptions } from "@todoke/kernel/problem";
import type { UpstreamName, upstreamProblems } from "../problems.ts";
import type { UpstreamOutcome } from "../telemetry.ts";
import type { NoResponseError, RawResponse } from "./exchange.ts";

/** A success: its bytes as they came, and their value. */
export interface UpstreamResponse {
  readonly status: number;
  readonly body: string;
  /** Undefined if there is no body. */
  readonly value: unknown;
  readonly etag?: string;
  /** The service replayed a stored response. */
  readonly replayed: boolean;
}

interface UpstreamFailure {
  readonly outcome: Exclude<UpstreamOutcome, "ok">;
  readonly problem: Problem;
  /** The service itself is failing, with any request. */
  readonly tripsBreaker: boolean;
  /** Another attempt may succeed. */
  readonly retryable: boolean;
}

export type UpstreamResult = { readonly outcome: "ok"; readonly response: UpstreamResponse } | UpstreamFailure;

export interface CallContext {
  readonly name: UpstreamName;
  readonly problems: (typeof upstreamProblems)[UpstreamName];
  /** Whether the call is idempotent. */
  readonly repeatable: boolean;
}

export function interpretResponse(context: CallContext, response: RawResponse): UpstreamResult {
  const { status } = response;
  if (status >= 200 && status < 300) return success(context, response);
  // Not the caller's error: the service refuses our own token.
  if (status === 401) return badGateway(context, "it refuses the gateway's token", { tripsBreaker: false });
  if (status >= 400 && status < 500) return refusal(context, response);
  if (status === 503) return unavailable(context, response);
  // A 500 is a bug in the handling of one request. It must not open the breaker for all others.
  return badGateway(context, `it returned ${status}`, { tripsBreaker: status === 502 || status === 504 });
}

export function interpretFailure(context: CallContext, cause: NoResponseError): UpstreamResult {
  const { name, problems } = context;
  if (cause.reason === "late") {
    const problem = problems.timeout(`${name} timed out${unknownIfUnsafe(context)}`, { cause });
    return { outcome: "timeout", problem, tripsBreaker: true, retryable: false };
  }
  const isBroken = cause.reason === "broken";
  const detail = isBroken ? "the connection failed" : "its response is unreadable";
  return badGateway(context, detail, { tripsBreaker: true, retryable: isBroken, cause });
}

function success(context: CallContext, { status, headers, body }: RawResponse): UpstreamResult {
  const value = body === "" ? undefined : parseJson(body);
  const isJson = mediaType(headers) === "application/json" && value !== undefined;
  if (!isJson && !(status === 204 && body === ""))
    return badGateway(context, "its response is not JSON", { tripsBreaker: true });
  const { etag } = headers;
  const replayed = headers["idempotency-replayed"] === "true";
  return { outcome: "ok", response: { status, body, value, replayed, ...(typeof etag === "string" && { etag }) } };
}

/** Passes on the service's problem, field by field: nothing that is not in our form. */
function refusal(context: CallContext, { status, headers, body }: RawResponse): UpstreamResult {
  const view = mediaType(headers) === "application/problem+json" ? parseJson(body) : undefined;
  if (!isProblemView(view))
    return badGateway(context, `it refused with ${status} and no reason`, { tripsBreaker: false });
  const { code, title, detail, errors } = view;
  const retryAfterSeconds = parseSeconds(headers["retry-after"]);
  const problem = new Problem({ code, status, title }, detail, {
    ...(errors && { fields: errors.map(({ field, detail }) => ({ field, detail })) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
  return { outcome: "refused", problem, tripsBreaker: false, retryable: false };
}

function unavailable(context: CallContext, { headers, body }: RawResponse): UpstreamResult {
  const { name, problems } = context;
  const problem = problems.unavailable(`${name} is unavailable${unknownIfUnsafe(context)}`, {
    retryAfterSeconds: parseSeconds(headers["retry-after"]) ?? 1,
    cause: new Error(`${name} returned 503: ${body.slice(0, 1_000)}`),
  });
  return { outcome: "unavailable", problem, tripsBreaker: true, retryable: true };
}

interface FailureOptions extends Pick<ProblemOptions, "cause"> {
  readonly tripsBreaker: boolean;
  readonly retryable?: boolean;
}

function badGateway(
  context: CallContext,
  detail: string,
  { tripsBreaker, retryable = false, cause }: FailureOptions,
): UpstreamResult {
  const { name, problems } = context;
  const problem = problems.badGateway(`${name}: ${detail}${unknownIfUnsafe(context)}`, { cause });
  return { outcome: "bad_gateway", problem, tripsBreaker, retryable };
}

const unknownIfUnsafe = ({ repeatable }: CallContext) =>
  repeatable ? "" : "; the request may have taken effect: retry with the same Idempotency-Key";

const mediaType = ({ "content-type": type }: RawResponse["headers"]): string | undefined =>
  typeof type === "string" ? type.split(";", 1)[0]?.trim().toLowerCase() : undefined;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ProblemView {
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly errors?: readonly { readonly field: string; readonly detail: string }[];
}

const codePattern = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

function isProblemView(value: unknown): value is ProblemView {
  const { code, title, detail, errors = [] } = (value ?? {}) as Record<string, unknown>;
  if (typeof code !== "string" || !codePattern.test(code)) return false;
  if (typeof title !== "string" || typeof detail !== "string" || !Array.isArray(errors)) return false;
  return errors.every((error) => typeof error?.field === "string" && typeof error?.detail === "string");
}

// A client may retry after this time even if a service asks for more.
const retryAfterMaxSeconds = 60;

function parseSeconds(header: string | string[] | undefined): number | undefined {
  if (typeof header !== "string" || !/^\d{1,9}$/.test(header)) return undefined;
  return Math.min(Number(header), retryAfterMaxSeconds);
}
