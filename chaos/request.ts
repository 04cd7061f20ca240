/** Sends one request and classifies the outcome. */
import type { Command, End } from "./history.ts";
import { requestTimeoutMs } from "./settings.ts";

export interface ServiceAddress {
  readonly name: string;
  readonly url: string;
}

export interface Answer {
  readonly end: End;
  /** The process that was called. */
  readonly via: string;
  readonly status?: number;
  readonly answer?: string;
  readonly replayed?: boolean;
  readonly reason?: string;
  /** The header Retry-After. */
  readonly retryAfter?: string;
}

export interface Post {
  /** Default: POST. */
  readonly method?: Command["method"];
  readonly path: string;
  readonly token: string;
  readonly body: unknown;
  readonly key?: string;
}

export async function post(
  address: ServiceAddress | undefined,
  { method = "POST", path, token, body, key }: Post,
): Promise<Answer> {
  if (!address) return { end: "unknown", reason: "no process serves", via: "" };
  try {
    const response = await fetch(new URL(path, address.url), {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(method !== "DELETE" && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key }),
      },
      ...(method !== "DELETE" && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const replayed = response.headers.get("idempotency-replayed") === "true";
    const answer = await response.text();
    const retryAfter = response.headers.get("retry-after");
    return {
      end: endOf(response.status, answer),
      status: response.status,
      answer,
      replayed,
      via: address.name,
      ...(retryAfter !== null && { retryAfter }),
    };
  } catch (error) {
    return { end: "unknown", reason: errorReason(error), via: address.name };
  }
}

/** Returns the body of a 200, "" for a 404, and undefined otherwise. */
export async function get(address: ServiceAddress, path: string, token: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const response = await fetch(new URL(path, address.url), { headers: { authorization: `Bearer ${token}` }, signal });
    const answer = await response.text();
    return response.status === 200 ? answer : response.status === 404 ? "" : undefined;
  } catch {
    return undefined;
  }
}

export function endOf(status: number, answer: string): End {
  if (status >= 200 && status < 300) return "ok";
  // The first attempt is still in progress, so its outcome is unknown.
  if (status === 409 && answer.includes("idempotency-in-progress")) return "unknown";
  return status >= 500 || status === 429 || status === 408 ? "unknown" : "refused";
}

function errorReason(error: unknown): string {
  const { name, cause } = error as Error;
  return cause instanceof Error ? `${name}: ${cause.message}` : name;
}
