/**
 * What an answer of a service means to us: a success, a refusal that goes on to the caller as it is, or a failure of the
 * service, told by its name.
 */
import { Problem, type ProblemOptions } from "@todoke/kernel/problem";
import type { upstreamProblems } from "../problems.ts";
import type { NoAnswer, RawAnswer } from "./exchange.ts";

export type UpstreamName = keyof typeof upstreamProblems;
type Problems = (typeof upstreamProblems)[UpstreamName];

/** A success: its bytes as they came, and what they mean. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Undefined where there is no body. */
  readonly value: unknown;
  readonly etag?: string;
  /** The service had carried it out before. */
  readonly replayed: boolean;
}

export type Result = "ok" | "refused" | "timeout" | "bad_gateway" | "unavailable";

export type Verdict =
  | { readonly result: "ok"; readonly answer: Answer }
  /** `ill`: the service itself is not well, whoever asks it. `again`: another try may find it better. */
  | {
      readonly result: Exclude<Result, "ok">;
      readonly problem: Problem;
      readonly ill: boolean;
      readonly again: boolean;
    };

export interface Asked {
  readonly name: UpstreamName;
  readonly problems: Problems;
  /** Whether asking twice is as good as asking once. */
  readonly repeatable: boolean;
}

export function verdictOn(asked: Asked, answer: RawAnswer): Verdict {
  const { status } = answer;
  if (status >= 200 && status < 300) return success(asked, answer);
  // Not the caller's fault: it is our token that the service does not take.
  if (status === 401) return badGateway(asked, "it does not take the gateway's token", { ill: false });
  if (status >= 400 && status < 500) return refusal(asked, answer);
  if (status === 503) return unavailable(asked, answer);
  // A 500 is a bug that this one request has met. It must not shut the service to everybody else.
  return badGateway(asked, `it answered with ${status}`, { ill: status === 502 || status === 504 });
}

export function verdictOnSilence({ name, problems, ...asked }: Asked, cause: NoAnswer): Verdict {
  if (cause.why === "late") {
    const problem = problems.timeout(`${name} did not answer in time${unknownIfUnsafe(asked)}`, { cause });
    return { result: "timeout", problem, ill: true, again: false };
  }
  const detail = cause.why === "broken" ? "the connection failed" : "what it answered cannot be read";
  return badGateway({ name, problems, ...asked }, detail, { ill: true, again: cause.why === "broken", cause });
}

function success(asked: Asked, { status, headers, body }: RawAnswer): Verdict {
  const value = body === "" ? undefined : parsed(body);
  const isJson = mediaTypeOf(headers) === "application/json" && value !== undefined;
  if (!isJson && !(status === 204 && body === ""))
    return badGateway(asked, "what it answered is not JSON", { ill: true });
  const { etag } = headers;
  const replayed = headers["idempotency-replayed"] === "true";
  return { result: "ok", answer: { status, body, value, replayed, ...(typeof etag === "string" && { etag }) } };
}

/** The caller is told what the service said, and nothing that it did not say in our form. */
function refusal(asked: Asked, { status, headers, body }: RawAnswer): Verdict {
  const said = mediaTypeOf(headers) === "application/problem+json" ? parsed(body) : undefined;
  if (!isProblemView(said)) return badGateway(asked, `it refused with ${status} and did not say why`, { ill: false });
  const { code, title, detail, errors } = said;
  const retryAfterSeconds = secondsIn(headers["retry-after"]);
  const problem = new Problem({ code, status, title }, detail, {
    ...(errors && { fields: errors.map(({ field, detail }) => ({ field, detail })) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
  return { result: "refused", problem, ill: false, again: false };
}

function unavailable({ name, problems, ...asked }: Asked, { headers, body }: RawAnswer): Verdict {
  const problem = problems.unavailable(`${name} cannot serve just now${unknownIfUnsafe(asked)}`, {
    retryAfterSeconds: secondsIn(headers["retry-after"]) ?? 1,
    cause: new Error(`${name} answered with 503: ${body.slice(0, 1_000)}`),
  });
  return { result: "unavailable", problem, ill: true, again: true };
}

interface Failing extends Pick<ProblemOptions, "cause"> {
  readonly ill: boolean;
  readonly again?: boolean;
}

function badGateway(
  { name, problems, ...asked }: Asked,
  what: string,
  { ill, again = false, cause }: Failing,
): Verdict {
  const problem = problems.badGateway(`${name}: ${what}${unknownIfUnsafe(asked)}`, { cause });
  return { result: "bad_gateway", problem, ill, again };
}

const unknownIfUnsafe = ({ repeatable }: Pick<Asked, "repeatable">) =>
  repeatable ? "" : "; the request may have taken effect or not: send it again with the same Idempotency-Key";

const mediaTypeOf = ({ "content-type": type }: RawAnswer["headers"]): string | undefined =>
  typeof type === "string" ? type.split(";", 1)[0]?.trim().toLowerCase() : undefined;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Said {
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly errors?: readonly { readonly field: string; readonly detail: string }[];
}

const wellFormedCode = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

function isProblemView(said: unknown): said is Said {
  const { code, title, detail, errors = [] } = (said ?? {}) as Record<string, unknown>;
  if (typeof code !== "string" || !wellFormedCode.test(code)) return false;
  if (typeof title !== "string" || typeof detail !== "string" || !Array.isArray(errors)) return false;
  return errors.every((error) => typeof error?.field === "string" && typeof error?.detail === "string");
}

// A service that asks for more than this is asked again anyway.
const retryAfterMaxSeconds = 60;

function secondsIn(header: string | string[] | undefined): number | undefined {
  if (typeof header !== "string" || !/^\d{1,9}$/.test(header)) return undefined;
  return Math.min(Number(header), retryAfterMaxSeconds);
}
