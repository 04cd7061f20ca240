/**
 * Sends grants at a constant rate, each with its own key. A grant without a response, or with a 5xx, is retried with the same
 * key at the next process. Each user gets one grant, so that notifications can be counted.
 */
import { hash } from "node:crypto";
import { setTimeout as pause, setInterval as ticks } from "node:timers/promises";

const apiKey = "tdk_flow";

/** Environment of both services. */
export const grantEnv = {
  TODOKE_API_KEYS: `flow=entitlements:write+read=${hash("sha256", apiKey, "hex")}`,
  LOG_LEVEL: "silent",
};

export interface GrantResult {
  readonly user: string;
  readonly status: number;
  readonly attempts: number;
}

export interface GrantLoad {
  readonly results: readonly GrantResult[];
  /** Sends the grant of a user again, with its key. Resolves with the status. */
  repeat(user: string): Promise<number>;
  /** Stops sending; resolves when every grant is answered, and rejects if one never was. */
  stop(): Promise<void>;
}

/**
 * `urls` is called for every attempt, because processes come and go. At most three seconds of load are unanswered at a time, so
 * that a slow machine is not overloaded.
 */
export function startGrantLoad(
  perSecond: number,
  urls: () => readonly string[],
  { responseMsMax = 5_000, attemptsMax = 100 }: { readonly responseMsMax?: number; readonly attemptsMax?: number } = {},
): GrantLoad {
  const results: GrantResult[] = [];
  const sent: Promise<void>[] = [];
  const stopping = new AbortController();

  async function grant(n: number): Promise<void> {
    for (let attempts = 1; attempts <= attemptsMax; attempts++) {
      const status = await sendGrant(urls(), { n, attempts, responseMsMax });
      if (!isRetryable(status)) {
        results.push({ user: `u_${n}`, status, attempts });
        return;
      }
      await pause(100);
    }
    throw new Error(`grant ${n} was not answered in ${attemptsMax} attempts`);
  }

  async function sendLoop(): Promise<void> {
    let n = 0;
    try {
      for await (const _ of ticks(1_000 / perSecond, undefined, { signal: stopping.signal })) {
        if (sent.length - results.length >= 3 * perSecond) continue;
        const granted = grant(n++);
        granted.catch(() => {}); // `stop` rejects with it.
        sent.push(granted);
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    }
  }
  const sending = sendLoop();

  return {
    results,
    repeat: (user) => sendGrant(urls(), { n: Number(user.slice("u_".length)), attempts: 1, responseMsMax }),
    async stop() {
      stopping.abort();
      await sending;
      await Promise.all(sent);
    },
  };
}

/** No response, a request that was sent too slowly (408), or a 5xx. */
const isRetryable = (status: number) => status === 0 || status === 408 || status >= 500;

interface GrantAttempt {
  readonly n: number;
  readonly attempts: number;
  readonly responseMsMax: number;
}

/** Returns the status of the response, or 0 if there was none. */
async function sendGrant(urls: readonly string[], { n, attempts, responseMsMax }: GrantAttempt): Promise<number> {
  const url = urls[(n + attempts) % urls.length];
  const body = { user_id: `u_${n}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${n}` };
  try {
    const response = await fetch(`${url}/v1/entitlements/grants`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "idempotency-key": `key-${n}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(responseMsMax),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}
