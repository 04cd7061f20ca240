import type { ServerResponse } from "node:http";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { alice, bearerOf, bob, setup } from "../testing.ts";
import { answering, type Behaviour, hangingUp, type ReceivedRequest, refusing, silent } from "../upstreams/testing.ts";

const notification = (n: number) => ({
  notification_id: `n${n}`,
  event_type: "EntitlementGranted",
  text: { en: `You can now use item${n}.`, ja: `item${n} をご利用いただけるようになりました。` },
  data: { match_id: `m_${n}`, team: n },
  occurred_at: "2026-01-08T07:10:00.123456Z",
});
const frame = (n: number) => `id: ${n}.0\nevent: notification\ndata: ${JSON.stringify(notification(n))}\n\n`;

/** Notification's open streams, and a way to write to all of them. */
function streaming() {
  const open = new Set<ServerResponse>();
  const behaviour: Behaviour = (response) => {
    open.add(response);
    response.on("close", () => open.delete(response));
    response.writeHead(200, { "content-type": "text/event-stream" }).write("retry: 1000\nid: 0.0\n\n");
  };
  return {
    open,
    behaviour,
    say(text: string) {
      for (const response of open) response.write(text);
    },
    end() {
      for (const response of open) response.end();
    },
  };
}

/** A client of the gateway's stream, and what it has received. */
async function follow(url: string, headers: Record<string, string>) {
  const leave = new AbortController();
  const answer = await fetch(`${url}/v1/inbox/stream`, { headers, signal: leave.signal });
  const received = { text: "", over: false };
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) received.text += decoder.decode(chunk, { stream: true });
  };
  void read()
    .catch(() => {})
    .finally(() => {
      received.over = true;
    });
  return { answer, received, leave: () => leave.abort() };
}

async function serve() {
  const t = await setup();
  const app = await t.process();
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { ...t, app, url };
}

test("the inbox lists the user's notifications in the requested language, by pages", async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  const page = { user_id: alice, notifications: [notification(1)], last_event_id: "7.0", next_cursor: "Nw" };
  t.services.notification.setBehaviour(answering(page));
  const list = async (language: string, query = "") => {
    const more = { ...headers, "accept-language": language, "x-user-id": bob };
    const answer = await t.app.inject({ url: `/v1/inbox${query}`, headers: more });
    return { language: answer.headers["content-language"], ...answer.json() };
  };
  const { user_id: _, ...rest } = page;
  expect(await list("en")).toEqual({
    language: "en",
    ...rest,
    notifications: [{ ...notification(1), text: notification(1).text.en }],
  });
  expect(await list("ja-JP,en;q=0.5", "?limit=1&cursor=Nw")).toEqual({
    language: "ja",
    ...rest,
    notifications: [{ ...notification(1), text: notification(1).text.ja }],
  });
  const received = t.services.notification.received.at(-1) as ReceivedRequest;
  expect(received.path).toBe(`/v1/users/${alice}/inbox?limit=1&cursor=Nw`);
  expect(received.headers).not.toHaveProperty("x-user-id");
  expect(await bearerOf("notification", received)).toMatchObject({ kind: "user", userId: alice, roles: ["USER"] });

  expect((await t.app.inject({ url: "/v1/inbox" })).statusCode).toBe(401);
  expect((await t.app.inject({ url: "/v1/inbox?limit=0", headers })).json()).toMatchObject({
    status: 400,
    errors: [{ field: "query.limit" }],
  });
});

test("a stream passes events on in the player's language, from Last-Event-ID", async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const { answer, received, leave } = await follow(t.url, {
    ...headers,
    "accept-language": "ja",
    "last-event-id": "5.0",
    "x-user-id": bob,
  });
  expect(answer.status).toBe(200);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "text/event-stream",
    "content-language": "ja",
    "cache-control": "no-store",
  });
  stream.say(frame(6));
  await until("it has come", () => received.text.includes("item6"));
  stream.say(":\n\n");
  await until("so has the beat", () => received.text.endsWith(":\n\n"));
  const data = JSON.stringify({ ...notification(6), text: notification(6).text.ja });
  expect(received.text).toBe(`retry: 1000\nid: 0.0\n\nid: 6.0\nevent: notification\ndata: ${data}\n\n:\n\n`);
  const asked = t.services.notification.received.at(-1) as ReceivedRequest;
  expect(asked.path).toBe(`/v1/users/${alice}/inbox/stream`);
  expect(asked.headers).toMatchObject({ "last-event-id": "5.0" });
  expect(asked.headers).not.toHaveProperty("x-user-id");
  expect(await bearerOf("notification", asked)).toMatchObject({ userId: alice });
  leave();
  await until("the stream is closed", () => stream.open.size === 0);
});

// Without them the client would wait until the test times out.
test("a client gets the headers of a stream before its first event", { timeout: 20_000 }, async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  t.services.notification.setBehaviour((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  });
  const { answer, received, leave } = await follow(t.url, headers);
  expect([answer.status, received.text]).toEqual([200, ""]);
  leave();
});

test("a stream ends with its session, by logout or suspension; others continue", async () => {
  await using t = await serve();
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const [phone, laptop, other] = [await t.logIn(alice), await t.logIn(alice), await t.logIn(bob)];
  const onPhone = await follow(t.url, phone.headers);
  const onLaptop = await follow(t.url, laptop.headers);
  const others = await follow(t.url, other.headers);
  await until("all are open", () => stream.open.size === 3);
  await t.sessions.end(alice, phone.sessionId);
  stream.say(frame(1));
  await until(
    "the phone's stream has ended, and the laptop has the event",
    () => onPhone.received.over && onLaptop.received.text.includes("item1"),
  );
  await t.sessions.saveUser({ userId: alice, status: "SUSPENDED", roles: ["USER"], version: 2 });
  stream.say(frame(2));
  await until("the laptop's has ended", () => onLaptop.received.over);
  await until("the other user has the event", () => others.received.text.includes("item2"));
  expect(onPhone.received.text).not.toContain("item1");
  expect(onLaptop.received.text).not.toContain("item2");
  await until("only the stream of the other user is open", () => stream.open.size === 1);
  others.leave();
});

test("a quiet stream ends with its session", async () => {
  await using t = await serve();
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const { headers, sessionId } = await t.logIn(alice);
  const { received } = await follow(t.url, headers);
  await t.sessions.end(alice, sessionId);
  await until("it has ended", () => received.over && stream.open.size === 0);
});

test("a stream ends if its session cannot be checked", async () => {
  await using t = await serve();
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const away = await t.process({
    sessions: (store) => ({ ...store, list: () => Promise.reject(new Error("the store is away")) }),
  });
  const url = await away.listen({ port: 0, host: "127.0.0.1" });
  const { received } = await follow(url, (await t.logIn(alice)).headers);
  stream.say(frame(1));
  await until("it has ended", () => received.over);
  expect(received.text).not.toContain("item1");
});

test("a stream that breaks off ends after a complete event", async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const ended = await follow(t.url, headers);
  stream.end();
  await until("it has ended", () => ended.received.over);
  expect(ended.received.text).toMatch(/\n\nretry: \d+\n\n$/);
  await until("the stream is closed", () => stream.open.size === 0);

  const cut = await follow(t.url, headers);
  stream.say(`${frame(1)}id: 2.0\nevent: notif`);
  await until("the first has come", () => cut.received.text.includes("item1"));
  for (const response of stream.open) response.destroy();
  await until("it has ended too", () => cut.received.over);
  expect(cut.received.text).not.toContain("2.0");
  expect(cut.received.text).toMatch(/\n\nretry: \d+\n\n$/);
});

test("stopping the gateway ends its streams", async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  const stream = streaming();
  t.services.notification.setBehaviour(stream.behaviour);
  const { received } = await follow(t.url, headers);
  await t.app.close();
  await until("it has ended", () => received.over && stream.open.size === 0);
  expect(received.text).toMatch(/retry: \d+\n\n$/);
});

test("a stream that cannot be opened gets the problem of an ordinary call", async () => {
  await using t = await serve();
  const { headers } = await t.logIn(alice);
  const ask = async (behaviour: Behaviour, app = t.app) => {
    t.services.notification.setBehaviour(behaviour);
    const answer = await app.inject({ url: "/v1/inbox/stream", headers });
    return [answer.statusCode, answer.json().code];
  };
  expect(await ask(refusing(429, "too-many-streams"))).toEqual([429, "too-many-streams"]);
  expect(await ask(hangingUp)).toEqual([502, "NOTIFICATION_BAD_GATEWAY"]);
  expect(await ask(answering({}))).toEqual([502, "NOTIFICATION_BAD_GATEWAY"]);
  expect(await ask(refusing(503, "unavailable"))).toEqual([503, "NOTIFICATION_UNAVAILABLE"]);
  expect(await ask(silent, await t.process({ streamTimeoutMs: 50 }))).toEqual([504, "NOTIFICATION_TIMEOUT"]);
  expect((await t.app.inject({ url: "/v1/inbox/stream" })).statusCode).toBe(401);
  expect((await t.app.inject({ method: "HEAD", url: "/v1/inbox/stream", headers })).statusCode).toBe(405);
  const without = await t.process({ without: ["notification"] });
  for (const url of ["/v1/inbox", "/v1/inbox/stream"])
    expect((await without.inject({ url, headers })).json()).toMatchObject({ code: "NOTIFICATION_UNAVAILABLE" });
});
