import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { circuitBreaker } from "@todoke/http";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";
import { notificationSender } from "../workers/notification-sender.ts";
import { readSecret, signatureHeaders } from "./signature.ts";
import { retryAfterMs, type WebhookOptions, webhookSender, webhookSenders } from "./webhook.ts";

const secret = readSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") as Uint8Array;
const backoff = { baseMs: 0, capMs: 0 };
const about = { attempt: 1, signal: new AbortController().signal };
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

type Answer = (response: ServerResponse) => unknown;

/** A receiver that answers as told, and keeps what it got. */
async function receiver(answer: Answer) {
  const got: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    got.push({ headers: request.headers, body: await text(request) });
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // By its address: of several that a name has, each but the last is given a quarter of a second to be connected to.
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
  return {
    got,
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

const answers = (status: number, headers: Record<string, string> = {}) => {
  return (response: ServerResponse) => response.writeHead(status, headers).end();
};

test("the receiver gets what a notification has for programs beside its words", async () => {
  await using t = await setup();
  const data = { ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 2 };
  await t.writeWithData(1, data);
  await using to = await receiver(answers(204));
  await using sender = notificationSender({ db: t.db, send: to.sender() });
  await sender.runOnce();
  expect(to.got.map(({ body }) => JSON.parse(body).data)).toMatchObject([{ notification_id: fixedId(1), data }]);
});

test("the receiver gets the notification signed, under the same id at every try", async () => {
  await using t = await setup();
  await t.write(1);
  let tries = 0;
  await using to = await receiver((response) => answers(++tries < 3 ? 500 : 204)(response));
  await using sender = notificationSender({ db: t.db, send: to.sender(), settings: { backoff } });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.statuses()).toMatchObject([{ status: "SENT", attempt_count: 3 }]);
  expect(to.got.map(({ headers }) => headers["webhook-id"])).toEqual([1, 1, 1].map(fixedId));
  for (const { headers, body } of to.got) {
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

test("410 is the end; 429 and 503 are asked again when they say; a redirect is a failure and is not followed", async () => {
  const outcome = async (answer: Answer) => {
    await using to = await receiver(answer);
    const result = await to.sender()(notification, about);
    expect(to.got).toHaveLength(1);
    return result;
  };
  expect(await outcome(answers(410))).toMatchObject({ kind: "dead" });
  expect(await outcome(answers(429, { "retry-after": "7" }))).toMatchObject({ kind: "retry", inMs: 7_000 });
  expect(await outcome(answers(503, { "retry-after": "7" }))).toMatchObject({ kind: "retry", inMs: 7_000 });
  expect(await outcome(answers(500, { "retry-after": "7" }))).toMatchObject({ kind: "retry", inMs: 0 });
  expect(await outcome(answers(302, { location: "/hook" }))).toMatchObject({
    kind: "retry",
    why: "the receiver answered 302",
  });
});

test("Retry-After may be seconds or a date, is bounded, and is nothing when it is nonsense", () => {
  const now = Date.parse("2026-01-08T07:10:00Z");
  expect(retryAfterMs("Thu, 08 Jan 2026 07:10:05 GMT", now)).toBe(5_000);
  expect(retryAfterMs("99999", now)).toBe(3_600_000);
  expect(["soon", "-1", "", undefined, "Thu, 08 Jan 2026 07:00:00 GMT"].map((text) => retryAfterMs(text, now))).toEqual(
    [0, 0, 0, 0, 0],
  );
});

test("a receiver that takes too long is given up, and one that never stops talking is cut off", async () => {
  await using silent = await receiver(() => {});
  await expect(silent.sender({ timeoutMs: 50 })(notification, about)).rejects.toThrow(/did not answer/);

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
  expect(await endless.sender()(notification, about)).toEqual({ kind: "done" });
  await until("it is cut off", () => cut);
});

test("a stop while the receiver is silent counts neither against the notification nor against the receiver", async () => {
  const stop = new AbortController();
  await using silent = await receiver(() => stop.abort());
  const send = silent.sender({ breaker: circuitBreaker({ failuresMax: 1 }) });
  expect(await send(notification, { attempt: 1, signal: stop.signal })).toMatchObject({ kind: "release", inMs: 0 });
  const next = new AbortController();
  const again = send(notification, { attempt: 1, signal: next.signal });
  await until("it is asked again", () => silent.got.length === 2);
  next.abort();
  await again;
});

const loopback = { address: "127.0.0.1", family: 4 };

test("a name that leads inside is refused before anything is sent, unless that is allowed", async () => {
  await using to = await receiver(answers(204));
  const url = new URL(to.url);
  url.hostname = "localhost";
  const refused = to.sender({ url, allowPrivate: false })(notification, about);
  await expect(refused).rejects.toMatchObject({ cause: { message: expect.stringContaining("not a public address") } });
  expect(to.got).toEqual([]);
  const resolve = async () => [loopback];
  expect(await to.sender({ url, resolve })(notification, about)).toEqual({ kind: "done" });
});

test("a name is resolved once, and the connection goes to the address that was looked at, under the receiver's name", async () => {
  await using to = await receiver(answers(204));
  const url = new URL(to.url);
  url.hostname = "receiver.invalid"; // which the system could not resolve
  let asked = 0;
  const resolve = async () => (++asked === 1 ? [loopback] : []);
  expect(await to.sender({ url, resolve })(notification, about)).toEqual({ kind: "done" });
  expect([asked, to.got[0]?.headers.host]).toEqual([1, url.host]);
});

test("one address inside among those of a name is enough to refuse it", async () => {
  await using to = await receiver(answers(204));
  const resolve = async () => [{ address: "1.1.1.1", family: 4 }, loopback];
  const refused = to.sender({ allowPrivate: false, resolve })(notification, about);
  await expect(refused).rejects.toMatchObject({ cause: { message: expect.stringContaining("is at 127.0.0.1") } });
  expect(to.got).toEqual([]);
});

test("over TLS the receiver's name is asked for, and a receiver that cannot prove it is refused", async () => {
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
  await expect(send(notification, about)).rejects.toThrow("did not answer");
  expect(names).toEqual(["receiver.invalid"]);
  server.close();
  await once(server, "close");
});

test("a receiver that fails again and again is left alone, at no cost to the attempts", async () => {
  await using to = await receiver(answers(500));
  const send = to.sender({ breaker: circuitBreaker({ failuresMax: 2, openMs: 3_600_000 }) });
  expect(await send(notification, about)).toMatchObject({ kind: "retry" });
  expect(await send(notification, about)).toMatchObject({ kind: "retry" });
  expect(await send(notification, about)).toMatchObject({ kind: "release", inMs: expect.any(Number) });
  expect(to.got).toHaveLength(2);
});

test("a receiver that hangs has its share of the places and no more: those for another go through", async () => {
  await using dead = await receiver(() => {});
  await using fine = await receiver(answers(200));
  const urls = new Map([["EntitlementGranted", dead.url]]);
  const stop = new AbortController();
  const send = webhookSenders({ url: fine.url, urls, concurrency: 4, secret, backoff, allowPrivate: true });
  const asked = { attempt: 1, signal: stop.signal };
  const hanging = [send(notification, asked), send(notification, asked)];
  await until("both hang", async () => dead.got.length === 2);
  expect(await send(notification, asked)).toMatchObject({ kind: "release" });
  expect(await send({ ...notification, eventType: "EntitlementRevoked" }, asked)).toEqual({ kind: "done" });
  stop.abort();
  expect(await Promise.all(hanging)).toMatchObject([{ kind: "release" }, { kind: "release" }]);
});
