/** One request and what came of it: an answer, or not even that. */
import type { End } from "./history.ts";
import { requestTimeoutMs } from "./settings.ts";

export interface Place {
  readonly name: string;
  readonly url: string;
}

export interface Answer {
  readonly end: End;
  /** The process that was asked. */
  readonly via: string;
  readonly status?: number;
  readonly answer?: string;
  readonly replayed?: boolean;
  readonly why?: string;
}

export interface Post {
  readonly path: string;
  readonly token: string;
  readonly body: unknown;
  readonly key?: string;
}

export async function post(place: Place | undefined, { path, token, body, key }: Post): Promise<Answer> {
  if (!place) return { end: "unknown", why: "nobody serves", via: "" };
  try {
    const response = await fetch(new URL(path, place.url), {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(key !== undefined && { "idempotency-key": key }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const replayed = response.headers.get("idempotency-replayed") === "true";
    const answer = await response.text();
    return { end: endOf(response.status, answer), status: response.status, answer, replayed, via: place.name };
  } catch (error) {
    return { end: "unknown", why: reasonOf(error), via: place.name };
  }
}

/** The body of a 200; "" for a 404; undefined when there was no such answer, which says nothing. */
export async function get(place: Place, path: string, token: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const response = await fetch(new URL(path, place.url), { headers: { authorization: `Bearer ${token}` }, signal });
    const answer = await response.text();
    return response.status === 200 ? answer : response.status === 404 ? "" : undefined;
  } catch {
    return undefined;
  }
}

export function endOf(status: number, answer: string): End {
  if (status >= 200 && status < 300) return "ok";
  // The first try is still under way: what comes of it is not known yet.
  if (status === 409 && answer.includes("idempotency-in-progress")) return "unknown";
  return status >= 500 || status === 429 || status === 408 ? "unknown" : "refused";
}

function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  return cause instanceof Error ? `${name}: ${cause.message}` : name;
}
