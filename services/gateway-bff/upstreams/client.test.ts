import { once } from "node:events";
import { createServer } from "node:net";
import { circuitBreaker } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import { freePort, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { type Call, openUpstream, type UpstreamOptions } from "./client.ts";
import { responseMaxBytes } from "./exchange.ts";
import { answering, type Behaviour, fakeService, hangingUp, holding, longMs, refusing, silent } from "./testing.ts";

const get: Call = { method: "GET", path: "/users/u_1" };
const post: Call = { method: "POST", path: "/users/u_1:delete", body: "{}", idempotencyKey: "key-1" };
const user = { userId: "u_1", roles: ["USER"] } as const;

/**
 * A service, and the gateway's way to it. Its breaker stays shut unless the test is about breakers, and its time is never
 * over: a call that is to end for want of an answer brings a time of its own.
 */
async function setup(behaviour: Behaviour, options: Partial<UpstreamOptions> = {}) {
  await using parts = new AsyncDisposableStack();
  const service = parts.use(await fakeService(behaviour));
  const upstream = parts.use(
    openUpstream({
      name: "account",
      url: service.url,
      tokenFor: async (audience, user) => `${audience}/${user?.userId ?? "itself"}`,
      timeoutMs: longMs,
      breaker: circuitBreaker({ failuresMax: 1_000 }),
      ...options,
    }),
  );
  const all = parts.move();
  const refusal = (call: Call = get): Promise<Problem> =>
    upstream.call(call).then(
      ({ status }) => expect.fail(`it was answered with ${status}`),
      (error) => (error instanceof Problem ? error : expect.fail(String(error))),
    );
  return { ...service, ...upstream, refusal, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

test("a success has the service's bytes, its ETag and whether it was a replay", async () => {
  const headers = { etag: '"3"', "idempotency-replayed": "true" };
  await using t = await setup(answering({ user_id: "u_1", text: "ü" }, { status: 201, headers }));
  expect(await t.call(get)).toEqual({
    status: 201,
    body: '{"user_id":"u_1","text":"ü"}',
    value: { user_id: "u_1", text: "ü" },
    etag: '"3"',
    replayed: true,
  });
});

test("a service receives only the gateway's own headers", async () => {
  await using t = await setup(answering({}));
  await t.call({ ...post, user, requestId: "request-1", ifMatch: '"2"' });
  await t.call(get);
  const [first, second] = t.received;
  expect(first).toMatchObject({ method: "POST", path: "/users/u_1:delete", body: "{}" });
  expect(first?.headers).toEqual({
    host: t.url.host,
    connection: "keep-alive",
    "content-length": "2",
    accept: "application/json",
    authorization: "Bearer account/u_1",
    "content-type": "application/json",
    "x-request-id": "request-1",
    "idempotency-key": "key-1",
    "if-match": '"2"',
  });
  expect(second?.headers).toEqual({
    host: t.url.host,
    connection: "keep-alive",
    accept: "application/json",
    authorization: "Bearer account/itself",
  });
});

test("a refusal is passed on unchanged", async () => {
  const errors = [{ field: "body.reason", detail: "is missing" }];
  await using t = await setup(refusing(409, "idempotency-in-progress", { errors }));
  const problem = await t.refusal();
  expect(problem.toJSON()).toMatchObject({
    code: "idempotency-in-progress",
    status: 409,
    detail: "not like this",
    errors,
  });
  t.setBehaviour((response, received) => {
    response.setHeader("retry-after", "7");
    refusing(429, "rate-limited")(response, received);
  });
  expect(await t.refusal()).toMatchObject({ status: 429, retryAfterSeconds: 7 });
});

test.each<[string, Behaviour, string, number]>([
  ["does not take our token", refusing(401, "unauthenticated"), "ACCOUNT_BAD_GATEWAY", 502],
  ["refuses and does not say why", answering("no", { status: 404 }), "ACCOUNT_BAD_GATEWAY", 502],
  ["has a bug", refusing(500, "internal"), "ACCOUNT_BAD_GATEWAY", 502],
  ["says that it is busy", refusing(503, "unavailable"), "ACCOUNT_UNAVAILABLE", 503],
  [
    "sends us elsewhere",
    answering({}, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    "ACCOUNT_BAD_GATEWAY",
    502,
  ],
  [
    "answers what is not JSON",
    (response) => response.setHeader("content-type", "application/json") && response.end("{"),
    "ACCOUNT_BAD_GATEWAY",
    502,
  ],
  [
    "answers a page",
    (response) => response.setHeader("content-type", "text/html") && response.end("<p>"),
    "ACCOUNT_BAD_GATEWAY",
    502,
  ],
  [
    "answers bytes that are no text",
    (response) =>
      response.setHeader("content-type", "application/json") && response.end(Buffer.from([0x22, 0xff, 0x22])),
    "ACCOUNT_BAD_GATEWAY",
    502,
  ],
  ["answers more than a megabyte", answering("x".repeat(responseMaxBytes)), "ACCOUNT_BAD_GATEWAY", 502],
  ["hangs up", hangingUp, "ACCOUNT_BAD_GATEWAY", 502],
  ["never answers", silent, "ACCOUNT_TIMEOUT", 504],
  [
    "begins to answer and stops",
    (response) => response.writeHead(200, { "content-type": "application/json" }).write("{"),
    "ACCOUNT_TIMEOUT",
    504,
  ],
])("the problem of a service that %s names the service", async (_what, behaviour, code, status) => {
  await using t = await setup(behaviour);
  const patience = status === 504 ? { timeoutMs: 300 } : {};
  expect(await t.refusal({ ...get, ...patience })).toMatchObject({ code, status });
  // A command may have taken effect: the problem says how to find out.
  expect((await t.refusal({ ...post, ...patience })).message).toContain("same Idempotency-Key");
  // The next call succeeds.
  t.setBehaviour(answering({ fine: true }));
  expect(await t.call(get)).toMatchObject({ value: { fine: true } });
});

test("a peer without HTTP, and a closed port, give BAD_GATEWAY", async () => {
  const port = await freePort();
  const server = createServer((socket) => void socket.resume().end("SSH-2.0-OpenSSH_9.2\r\n")).listen(
    port,
    "127.0.0.1",
  );
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${port}`);
  await using t = await setup(silent, { url });
  expect(await t.refusal()).toMatchObject({ code: "ACCOUNT_BAD_GATEWAY" });
  server.close();
  await once(server, "close");
  expect(await t.refusal()).toMatchObject({ code: "ACCOUNT_BAD_GATEWAY" });
});

test("a failed read is retried once, a command never", async () => {
  await using t = await setup(hangingUp);
  let times = 0;
  t.setBehaviour((response, received) => (++times === 1 ? hangingUp : answering({ times }))(response, received));
  expect(await t.call(get)).toMatchObject({ value: { times: 2 } });
  t.setBehaviour(hangingUp);
  t.received.length = 0;
  await t.refusal(post);
  expect(t.received).toHaveLength(1);
  await t.refusal(get);
  expect(t.received).toHaveLength(3);
  await t.refusal({ ...post, repeatable: true });
  expect(t.received).toHaveLength(5);
});

test("retries are at most a tenth of the calls plus ten", async () => {
  await using t = await setup(refusing(503, "unavailable"));
  for (let n = 0; n < 100; n++) await t.refusal();
  expect(t.received.length).toBeGreaterThan(110);
  expect(t.received.length).toBeLessThanOrEqual(100 + 10 + 10);
});

test("the breaker opens after repeated failures, then one call probes the service", async () => {
  const clock = { ms: 0 };
  const breaker = circuitBreaker({ failuresMax: 3, openMs: 5_000, now: () => clock.ms });
  await using t = await setup(silent, { breaker });
  const hasty = { ...post, timeoutMs: 50 };
  for (let n = 0; n < 3; n++) expect(await t.refusal(hasty)).toMatchObject({ code: "ACCOUNT_TIMEOUT" });
  const fourth = await t.refusal({ ...hasty, path: "/users/u_4:delete" });
  expect(fourth).toMatchObject({ code: "ACCOUNT_UNAVAILABLE", status: 503, retryAfterSeconds: 5 });

  clock.ms = 5_000;
  t.setBehaviour(answering({ fine: true }));
  const answers = await Promise.allSettled([t.call(get), t.call(get), t.call(get)]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(await Promise.all([t.call(get), t.call(get)])).toMatchObject([{ status: 200 }, { status: 200 }]);
  // Those whose time was over may have been received or not; who came while it was left alone was not.
  expect(t.received.map(({ path }) => path)).not.toContain("/users/u_4:delete");
});

test("refusals and 500s do not open the breaker", async () => {
  await using t = await setup(refusing(500, "internal"), { breaker: circuitBreaker({ failuresMax: 2 }) });
  for (const behaviour of [
    refusing(500, "internal"),
    refusing(404, "user-not-found"),
    refusing(401, "unauthenticated"),
  ]) {
    t.setBehaviour(behaviour);
    for (let n = 0; n < 5; n++) expect((await t.refusal(post)).code).not.toBe("ACCOUNT_UNAVAILABLE");
  }
});

test("slow calls of staff do not open the breaker", async () => {
  await using t = await setup(silent, { breaker: circuitBreaker({ failuresMax: 2 }) });
  for (const path of ["/v1/admin/overview", "/admin/audit", "/v1/admin/why/u_1"])
    expect(await t.refusal({ ...get, path, timeoutMs: 50 })).toMatchObject({ code: "ACCOUNT_TIMEOUT" });
  t.setBehaviour(answering({ fine: true }));
  expect(await t.call(get)).toMatchObject({ status: 200 });
});

test("calls beyond the bulkhead limit of a hanging service fail immediately", async () => {
  await using t = await setup(silent, { concurrency: 2, queueMax: 1 });
  using hung = holding(answering({ fine: true }));
  t.setBehaviour(hung.behaviour);
  const early = [t.call(get), t.call(get)];
  await until("both places are taken", () => t.received.length === 2);
  // A queued call waits until its own timeout and then leaves the queue.
  expect(await t.refusal({ ...get, timeoutMs: 50 })).toMatchObject({ code: "ACCOUNT_UNAVAILABLE" });
  const third = t.call(get);
  // Refused without waiting for a timeout.
  expect(await t.refusal()).toMatchObject({ code: "ACCOUNT_UNAVAILABLE", retryAfterSeconds: 1 });
  expect(t.received).toHaveLength(2);
  hung.release();
  expect((await Promise.all([...early, third])).map(({ status }) => status)).toEqual([200, 200, 200]);

  // Those who are never answered give their places back as well.
  t.setBehaviour(silent);
  const late = await Promise.all([1, 2].map(() => t.refusal({ ...get, timeoutMs: 50 })));
  expect(late.map(({ code }) => code)).toEqual(["ACCOUNT_TIMEOUT", "ACCOUNT_TIMEOUT"]);
  t.setBehaviour(answering({ fine: true }));
  expect(await Promise.all([t.call(get), t.call(get), t.call(get)])).toHaveLength(3);
});
