/** A player's client at the gateway, as a game has one. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const triesMax = 100;

/** As a game asks: what is answered with "later" is sent again as it was, with the same key. */
export async function untilAnswered(url: string, request: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(url, request);
    if (answer.status !== 503 || tries === triesMax) return answer;
    await answer.body?.cancel();
    await pause(100);
  }
}

export function clientOf(gateway: string, token: string) {
  async function call(method: string, path: string, payload?: object) {
    const answer = await untilAnswered(`${gateway}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload && { "content-type": "application/json", "idempotency-key": randomUUID() }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway says.
    return { status: answer.status, body: (await answer.json()) as any };
  }
  return {
    call,
    join: async () => (await call("POST", "/v1/matchmaking/queues/duel/tickets", {})).body.ticket_id as string,
    ticket: async (id: string) => (await call("GET", `/v1/matchmaking/tickets/${id}`)).body,
    told: async () => (await call("GET", "/v1/inbox")).body.notifications,
    /** What comes live from now on. */
    async follow() {
      const stopping = new AbortController();
      const answer = await untilAnswered(`${gateway}/v1/inbox/stream`, {
        headers: { authorization: `Bearer ${token}` },
        signal: stopping.signal,
      });
      let heard = "";
      const reading = (async () => {
        for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) heard += text;
      })().catch(() => {});
      return {
        matches: () => heard.split("\n").filter((line) => line.startsWith("data:") && line.includes("MatchMade")),
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await reading;
        },
      };
    },
  };
}
