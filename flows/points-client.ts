/** HTTP client of the points service. It repeats a request at the next process until there is a response below 500. */
import { hash } from "node:crypto";
import { until } from "@todoke/kernel/testing";

const apiKey = "tdk_flow";

export const apiKeys = `flow=points:write+read=${hash("sha256", apiKey, "hex")}`;

export interface PointsRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** Sent as the Idempotency-Key. */
  readonly key?: string;
}

export interface PointsResponse {
  readonly status: number;
  /** The exact bytes. */
  readonly text: string;
  readonly isReplayed: boolean;
}

/** Returns undefined without a response: then the outcome is unknown. */
export async function sendOnce(
  url: string,
  { method, path, body, key }: PointsRequest,
): Promise<PointsResponse | undefined> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(key !== undefined && { "idempotency-key": key }),
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      // Long, because a repeated request is rejected while the first is still in progress.
      signal: AbortSignal.timeout(60_000),
    });
    const isReplayed = response.headers.get("idempotency-replayed") === "true";
    return { status: response.status, text: await response.text(), isReplayed };
  } catch {
    return undefined;
  }
}

/** Long enough for a server restart on a busy machine. */
const responseMsMax = 120_000;

/** `urls` is called for every attempt, because processes come and go. */
export function createPointsClient(urls: () => readonly string[]) {
  let callCount = 0;
  const next = () => urls()[callCount++ % urls().length] ?? "";

  async function sendUntilAnswered(message: PointsRequest): Promise<PointsResponse> {
    let response: PointsResponse | undefined;
    const isAnswered = async () => {
      response = await sendOnce(next(), message);
      return response !== undefined && response.status < 500;
    };
    await until(`${message.method} ${message.path} is answered`, isAnswered, { withinMs: responseMsMax });
    return response as PointsResponse;
  }

  /** Returns the body of a successful response; throws otherwise. */
  async function request<Body>(message: PointsRequest): Promise<Body> {
    const { status, text } = await sendUntilAnswered(message);
    if (status >= 300) throw new Error(`${message.method} ${message.path} was answered ${status}: ${text}`);
    return JSON.parse(text) as Body;
  }

  return {
    next,
    sendUntilAnswered,
    request,
    /** Balance and reserved points of a user. */
    confirm: (user: string) =>
      request<{ balance: number; pending: number }>({ method: "GET", path: `/point/confirm?user_id=${user}` }),
    reservation: (id: string) =>
      request<{ status: string; last_error?: string }>({ method: "GET", path: `/v1/points/reservations/${id}` }),
  };
}

export type PointsClient = ReturnType<typeof createPointsClient>;

/** Runs `work` for every item, 16 at a time. */
export async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  const workers = Array.from({ length: 16 }, async () => {
    for (const item of rest) await work(item);
  });
  await Promise.all(workers);
}
