/**
 * Grants as a shop sends them: at a steady pace, each with a key of its own, and again with the same key to the next
 * process when the answer was lost or was "later". Every user is granted one product, so that who was told can be counted.
 */
import { hash } from "node:crypto";
import { setTimeout as pause, setInterval as ticks } from "node:timers/promises";

const apiKey = "tdk_flow";

/** What both services take from the environment when a flow grants. */
export const grantingEnv = {
  TODOKE_API_KEYS: `flow=entitlements:write+read=${hash("sha256", apiKey, "hex")}`,
  LOG_LEVEL: "silent",
};

export interface Answered {
  readonly user: string;
  readonly status: number;
  readonly tries: number;
}

export interface Granting {
  readonly answered: readonly Answered[];
  /** Sends no more, and resolves when all that was sent is answered; rejects if one never was. */
  stop(): Promise<void>;
}

/**
 * `urls` is asked at every try: a client's list of processes changes while they come and go. Nothing new is sent while so much
 * is unanswered as is sent in three seconds: a machine that cannot keep the pace is not buried.
 */
export function startGranting(
  perSecond: number,
  urls: () => readonly string[],
  { answerMsMax = 5_000 }: { readonly answerMsMax?: number } = {},
): Granting {
  const answered: Answered[] = [];
  const sent: Promise<void>[] = [];
  const stopping = new AbortController();

  async function grant(n: number): Promise<void> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const status = await tryGrant(urls(), { n, tries, answerMsMax });
      if (!isLater(status)) {
        answered.push({ user: `u_${n}`, status, tries });
        return;
      }
      await pause(100);
    }
    throw new Error(`grant ${n} was not answered in ${triesMax} tries`);
  }

  async function keepSending(): Promise<void> {
    let n = 0;
    try {
      for await (const _ of ticks(1_000 / perSecond, undefined, { signal: stopping.signal })) {
        if (sent.length - answered.length >= 3 * perSecond) continue;
        const granted = grant(n++);
        granted.catch(() => {}); // `stop` tells of it.
        sent.push(granted);
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    }
  }
  const sending = keepSending();

  return {
    answered,
    async stop() {
      stopping.abort();
      await sending;
      await Promise.all(sent);
    },
  };
}

const triesMax = 100;

/** No answer, one that was too late for whoever asked so slowly, or "later". */
const isLater = (status: number) => status === 0 || status === 408 || status >= 500;

interface Try {
  readonly n: number;
  readonly tries: number;
  readonly answerMsMax: number;
}

/** The status of the answer, or 0 if there was none. */
async function tryGrant(urls: readonly string[], { n, tries, answerMsMax }: Try): Promise<number> {
  const url = urls[(n + tries) % urls.length];
  const body = { user_id: `u_${n}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${n}` };
  try {
    const answer = await fetch(`${url}/v1/entitlements/grants`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "idempotency-key": `key-${n}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(answerMsMax),
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0;
  }
}
