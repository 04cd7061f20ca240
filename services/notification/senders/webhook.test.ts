import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { circuitBreaker } from "@todoke/http";
import { fixedId, until } from "@todoke/kernel/testing";
import { release, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";
import { notificationSender } from "../workers/notification-sender.ts";
import { parseSecret, signatureHeaders } from "./signature.ts";
import { parseRetryAfterMs, type WebhookOptions, webhookSender, webhookSenders } from "./webhook.ts";

const secret = parseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") as Uint8Array;
const backoff = { baseMs: 0, capMs: 0 };
const attempt = { attempt: 1, signal: new AbortController().signal };
const notification = {
  notificationId: fixedId(1),
  eventId: fixedId(2),
  userId: "u_123",
  eventType: "EntitlementGranted",
  text: { en: "You can now use item1.", ja: "…" },
  data: null,
  occurredAt: "2026-01-08T07:10:00Z",
  headers: {},
  ageMs: 0,
};

type Respond = (response: ServerResponse) => unknown;

/** A receiver that responds as given and records its requests. */
async function receiver(respond: Respond) {
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    respond(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // An address and not a name: a name with several addresses gets 250 ms for each connection attempt.
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
  return {
    received,
    url,
    sender: (more: Partial<WebhookOptions> = {}) =>
      webhookSender({ url, secret, backoff, allowPrivate: true, ...more }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const respondWith = (status: number, headers: Record<string, string> = {}) => {
  return (response: ServerResponse) => response.writeHead(status, headers).end();
};

test("the receiver gets the data of a notification", async () => {
  await using t = await setup();
  const data = { ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 2 };
  await t.writeWithData(1, data);
  await using to = await receiver(respondWith(204));
  await using sender = notificationSender({ db: t.db, send: to.sender() });
  await sender.runOnce();
  expect(to.received.map(({ body }) => JSON.parse(body).data)).toMatchObject([{ notification_id: fixedId(1), data }]);
});

test("the receiver gets a signed notification with the same id at every attempt", async () => {
  await using t = await setup();
  await t.write(1);
  let attempts = 0;
  await using to = await receiver((response) => respondWith(++attempts < 3 ? 500 : 204)(response));
  await using sender = notificationSender({ db: t.db, send: to.sender(), settings: { backoff } });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.statuses()).toMatchObject([{ status: "SENT", attempt_count: 3 }]);
  expect(to.received.map(({ headers }) => headers["webhook-id"])).toEqual([1, 1, 1].map(fixedId));
  for (const { headers, body } of to.received) {
    const timestamp = Number(headers["webhook-timestamp"]);
    expect(headers).toMatchObject(signatureHeaders(secret, { id: fixedId(1), timestamp, body }));
    expect(headers).toMatchObject({ host: to.url.host, "content-type": "application/json" });
    expect(JSON.parse(body)).toEqual({
      type: "EntitlementGranted",
      timestamp: "2026-01-08T07:00:01.000001Z",
      data: {
        notification_id: fixedId(1),
        event_id: fixedId(1_001),
        user_id: "u_123",
        text: { en: "item1", ja: "item1" },
      },
    });
  }
});

test("410 is dead, 429 and 503 honour Retry-After, and a redirect is a retry", async () => {
  const outcome = async (respond: Respond) => {
    await using to = await receiver(respond);
    const result = await to.sender()(notification, attempt);
    expect(to.received).toHaveLength(1);
    return result;
  };
  expect(await outcome(respondWith(410))).toMatchObject({ kind: "dead" });
  expect(await outcome(respondWith(429, { "retry-after": "7" }))).toEqual(retry(7_000, "the receiver answered 429"));
  expect(await outcome(respondWith(503, { "retry-after": "7" }))).toEqual(retry(7_000, "the receiver answered 503"));
  expect(await outcome(respondWith(500, { "retry-after": "7" }))).toEqual(retry(0, "the receiver answered 500"));
  expect(await outcome(respondWith(302, { location: "/hook" }))).toEqual(retry(0, "the receiver answered 302"));
});

test("Retry-After is seconds or a date, is bounded, and is 0 if invalid", () => {
  const now = Date.parse("2026-01-08T07:10:00Z");
  expect(parseRetryAfterMs("Thu, 08 Jan 2026 07:10:05 GMT", now)).toBe(5_000);
  expect(parseRetryAfterMs("99999", now)).toBe(3_600_000);
  expect(
    ["soon", "-1", "", undefined, "Thu, 08 Jan 2026 07:00:00 GMT"].map((text) => parseRetryAfterMs(text, now)),
  ).toEqual([0, 0, 0, 0, 0]);
});

test("a receiver that does not answer times out, and an endless response is cut off", async () => {
  await using silent = await receiver(() => {});
  await expect(silent.sender({ timeoutMs: 50 })(notification, attempt)).rejects.toThrow(/did not answer/);

  let cut = false;
  await using endless = await receiver((response) => {
    response.writeHead(200);
    response.once("close", () => {
      cut = true;
    });
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1_024)));
    };
    response.on("drain", more);
    more();
  });
  expect(await endless.sender()(notification, attempt)).toEqual({ kind: "done" });
  await until("it is cut off", () => cut);
});

test("a stop during a request counts no attempt and no failure of the receiver", async () => {
  const stop = new AbortController();
  await using silent = await receiver(() => stop.abort());
  const send = silent.sender({ breaker: circuitBreaker({ failuresMax: 1 }) });
  expect(await send(notification, { attempt: 1, signal: stop.signal })).toEqual(
    release("the sender stopped before the receiver responded"),
  );
  const next = new AbortController();
  const again = send(notification, { attempt: 1, signal: next.signal });
  await until("it is sent again", () => silent.received.length === 2);
  next.abort();
  await again;
});

const loopback = { address: "127.0.0.1", family: 4 };

test("a name that resolves to a private address is rejected, unless that is allowed", async () => {
  await using to = await receiver(respondWith(204));
  const url = new URL(to.url);
  url.hostname = "localhost";
  const rejected = to.sender({ url, allowPrivate: false })(notification, attempt);
  await expect(rejected).rejects.toMatchObject({ cause: { message: expect.stringContaining("not a public address") } });
  expect(to.received).toEqual([]);
  const resolve = async () => [loopback];
  expect(await to.sender({ url, resolve })(notification, attempt)).toEqual({ kind: "done" });
});

test("a name is resolved once, and the connection uses the checked address", async () => {
  await using to = await receiver(respondWith(204));
  const url = new URL(to.url);
  url.hostname = "receiver.invalid"; // the system cannot resolve it
  let lookups = 0;
  const resolve = async () => (++lookups === 1 ? [loopback] : []);
  expect(await to.sender({ url, resolve })(notification, attempt)).toEqual({ kind: "done" });
  expect([lookups, to.received[0]?.headers.host]).toEqual([1, url.host]);
});

test("one private address among those of a name is enough to reject it", async () => {
  await using to = await receiver(respondWith(204));
  const resolve = async () => [{ address: "1.1.1.1", family: 4 }, loopback];
  const rejected = to.sender({ allowPrivate: false, resolve })(notification, attempt);
  await expect(rejected).rejects.toMatchObject({
    cause: { message: expect.stringContaining("resolves to 127.0.0.1") },
  });
  expect(to.received).toEqual([]);
});

test("TLS uses the name of the URL, and a receiver without its certificate is rejected", async () => {
  const names: string[] = [];
  const server = createTlsServer({
    SNICallback(name, callback) {
      names.push(name);
      callback(new Error("no certificate for this name"));
    },
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`https://receiver.invalid:${(server.address() as AddressInfo).port}/`);
  const send = webhookSender({ url, secret, backoff, allowPrivate: true, resolve: async () => [loopback] });
  await expect(send(notification, attempt)).rejects.toThrow("did not answer");
  expect(names).toEqual(["receiver.invalid"]);
  server.close();
  await once(server, "close");
});

test.each([429, 500])(
  "sending to a receiver that answers %i repeatedly is paused, and no attempts are counted",
  async (status) => {
    await using to = await receiver(respondWith(status));
    const send = to.sender({ breaker: circuitBreaker({ failuresMax: 2, openMs: 3_600_000 }) });
    expect(await send(notification, attempt)).toMatchObject({ kind: "retry" });
    expect(await send(notification, attempt)).toMatchObject({ kind: "retry" });
    expect(await send(notification, attempt)).toMatchObject({ kind: "release" });
    expect(to.received).toHaveLength(2);
  },
);

test("a hanging receiver uses only its share of the concurrency", async () => {
  await using dead = await receiver(() => {});
  await using fine = await receiver(respondWith(200));
  const urls = new Map([["EntitlementGranted", dead.url]]);
  const stop = new AbortController();
  const send = webhookSenders({ url: fine.url, urls, concurrency: 4, secret, backoff, allowPrivate: true });
  const attemptUntilStop = { attempt: 1, signal: stop.signal };
  const hanging = [send(notification, attemptUntilStop), send(notification, attemptUntilStop)];
  await until("both hang", async () => dead.received.length === 2);
  expect(await send(notification, attemptUntilStop)).toMatchObject({ kind: "release" });
  expect(await send({ ...notification, eventType: "EntitlementRevoked" }, attemptUntilStop)).toEqual({ kind: "done" });
  stop.abort();
  expect(await Promise.all(hanging)).toMatchObject([{ kind: "release" }, { kind: "release" }]);
});
