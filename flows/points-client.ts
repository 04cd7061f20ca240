/**
 * Points over HTTP, as a shop asks for them: whatever is lost or put off is sent again, as it was, to the next process,
 * until it is answered.
 */
import { hash } from "node:crypto";
import { until } from "@todoke/kernel/testing";

const apiKey = "tdk_flow";

export const apiKeys = `flow=points:write+read=${hash("sha256", apiKey, "hex")}`;

export interface Ask {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** Sent as the Idempotency-Key. */
  readonly key?: string;
}

export interface Answer {
  readonly status: number;
  /** As it came, to the byte. */
  readonly text: string;
  readonly isReplayed: boolean;
}

/** Undefined where no answer came: nobody knows what became of it. */
export async function askOnce(url: string, { method, path, body, key }: Ask): Promise<Answer | undefined> {
  try {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(key !== undefined && { "idempotency-key": key }),
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      // Whoever gives up sooner may be refused elsewhere while this one is still carried out.
      signal: AbortSignal.timeout(60_000),
    });
    const isReplayed = answer.headers.get("idempotency-replayed") === "true";
    return { status: answer.status, text: await answer.text(), isReplayed };
  } catch {
    return undefined;
  }
}

/** An outage of a server and its start, on a busy machine. */
const patienceMs = 120_000;

/** `urls` is asked at every try: a client's list of processes changes while they come and go. */
export function clientOf(urls: () => readonly string[]) {
  let turn = 0;
  const next = () => urls()[turn++ % urls().length] ?? "";

  async function ask(wanted: Ask): Promise<Answer> {
    let answer: Answer | undefined;
    const isAnswered = async () => {
      answer = await askOnce(next(), wanted);
      return answer !== undefined && answer.status < 500;
    };
    await until(`${wanted.method} ${wanted.path} is answered`, isAnswered, { withinMs: patienceMs });
    return answer as Answer;
  }

  /** What must be answered with success. */
  async function told<Body>(wanted: Ask): Promise<Body> {
    const { status, text } = await ask(wanted);
    if (status >= 300) throw new Error(`${wanted.method} ${wanted.path} was answered ${status}: ${text}`);
    return JSON.parse(text) as Body;
  }

  return {
    next,
    ask,
    told,
    /** What a user has, and what is still to come. */
    confirm: (user: string) =>
      told<{ balance: number; pending: number }>({ method: "GET", path: `/point/confirm?user_id=${user}` }),
    reservation: (id: string) =>
      told<{ status: string; last_error?: string }>({ method: "GET", path: `/v1/points/reservations/${id}` }),
  };
}

export type PointsClient = ReturnType<typeof clientOf>;

/** Gives everything to `work`, so many at a time. */
export async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  const hands = Array.from({ length: 16 }, async () => {
    for (const item of rest) await work(item);
  });
  await Promise.all(hands);
}
