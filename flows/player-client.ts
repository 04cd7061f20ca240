/** A player's HTTP client at the gateway, as a game has one. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const attemptsMax = 100;

/** Repeats a request, with the same key, while the response is 503. */
async function fetchUntilAvailable(url: string, request: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, request);
    if (response.status !== 503 || attempt === attemptsMax) return response;
    await response.body?.cancel();
    await pause(100);
  }
}

export function createPlayerClient(gateway: string, token: string) {
  const authorization = `Bearer ${token}`;

  async function call(method: string, path: string, payload?: object, key: string = randomUUID()) {
    const response = await fetchUntilAvailable(`${gateway}/v1${path}`, {
      method,
      headers: {
        authorization,
        ...(payload && { "content-type": "application/json", "idempotency-key": key }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    const text = await response.text();
    const isReplayed = response.headers.get("idempotency-replayed") === "true";
    return { status: response.status, isReplayed, text, body: JSON.parse(text) };
  }

  return {
    call,
    join: (mode: string, key?: string) => call("POST", `/matchmaking/queues/${mode}/tickets`, {}, key),
    getTicket: async (id: string) => (await call("GET", `/matchmaking/tickets/${id}`)).body,
    cancel: (id: string) => call("DELETE", `/matchmaking/tickets/${id}`),
    /** The data of the user's notifications of an event type. */
    notifications: async (eventType: string) => {
      const { body } = await call("GET", "/inbox");
      return body.notifications
        .filter((each: { event_type: string }) => each.event_type === eventType)
        .map(({ data }: { data: unknown }) => data);
    },
    /** Opens the inbox stream. */
    async openStream() {
      const stopping = new AbortController();
      const { signal } = stopping;
      const response = await fetchUntilAvailable(`${gateway}/v1/inbox/stream`, { headers: { authorization }, signal });
      let received = "";
      const reading = (async () => {
        for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) received += text;
      })().catch(() => {});
      return {
        /** The lines of notifications of an event type. */
        notifications: (eventType: string) =>
          received.split("\n").filter((line) => line.startsWith("data:") && line.includes(eventType)),
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await reading;
        },
      };
    },
  };
}
