import { expect, test } from "vitest";
import { createClient, isProblem, NoAnswer, OutcomeUnknown, Problem } from "./index.ts";
import { cutBody, fakeFetch, json, lost, problem, type Reply, silence } from "./testing/fake-fetch.ts";

const soon = { "retry-after": "0" };
const spend = { user_id: "u_1", point_amount: 250n };
const done = json({ transaction_id: "t_1", balance: 50 });

function setup(...replies: readonly Reply[]) {
  const { fetch, sent } = fakeFetch(...replies);
  const services = {
    points: "http://points.example/",
    matchmaking: "http://m.example",
    orders: "http://orders.example",
  };
  const todoke = createClient({ services, apiKey: "tdk_test", fetch, retryBaseMs: 1 });
  return { todoke, sent };
}

const endOf = (call: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(call).then(
    () => "success",
    (error) => error,
  );

test("a command has an idempotency key without being asked, and each command another", async () => {
  const { todoke, sent } = setup(done);
  await todoke.points.spend(spend);
  await todoke.points.spend(spend);
  await todoke.points.spend(spend, { key: "order-7" });
  const [first, second, third] = sent.map(({ headers }) => headers["idempotency-key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).not.toBe(first);
  expect(third).toBe("order-7");
  expect(sent[0]).toMatchObject({ method: "POST", url: "http://points.example/v1/points/spends" });
  expect(sent[0]?.headers.authorization).toBe("Bearer tdk_test");
});

test.each<[name: string, reply: Reply]>([
  ["the connection is refused or lost", lost],
  ["the connection is lost in the body", cutBody],
  ["the body is not JSON", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["408", problem(408, "request-timeout")],
  ["429", problem(429, "rate-limited", soon)],
  ["409 with Retry-After", problem(409, "idempotency-in-progress", soon)],
  ["500", problem(500, "internal")],
  ["502", problem(502, "POINTS_BAD_GATEWAY")],
  ["502 of a proxy", () => new Response("<html>", { status: 502 })],
  ["503 with Retry-After", problem(503, "outcome-unknown", soon)],
  ["504", problem(504, "POINTS_TIMEOUT")],
])("after %s a command is sent again, with the same key and the same bytes", async (_name, reply) => {
  const { todoke, sent } = setup(reply, reply, done);
  const { data, attempts } = await todoke.points.spend(spend).withResponse();
  expect([data.balance, attempts]).toEqual([50n, 3]);
  expect(new Set(sent.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  expect(new Set(sent.map(({ body, url }) => url + body)).size).toBe(1);
});

test.each<[name: string, reply: Reply]>([
  ["400", problem(400, "invalid-request")],
  ["401", problem(401, "unauthenticated")],
  ["403", problem(403, "forbidden")],
  ["404", problem(404, "not-found")],
  ["409 without Retry-After", problem(409, "insufficient-points")],
  ["422", problem(422, "too-many-lots")],
  ["503 while trading is halted", problem(503, "trading-halted", soon)],
])("%s is not retried, and says that nothing happened", async (_name, reply) => {
  const { todoke, sent } = setup(reply);
  const error = await endOf(todoke.points.spend(spend));
  expect(error).toBeInstanceOf(Problem);
  expect(sent).toHaveLength(1);
});

test("a 500 is retried twice, and then the outcome is unknown", async () => {
  const { todoke, sent } = setup(problem(500, "internal"));
  const error = await endOf(todoke.points.spend(spend, { key: "k" }));
  expect(error).toBeInstanceOf(OutcomeUnknown);
  expect(error).toMatchObject({ key: "k", attempts: 3, cause: { code: "internal" } });
  expect(sent).toHaveLength(3);
});

test("after a lost attempt only an answer that follows the look-up of the key is definite", async () => {
  for (const [status, code] of [
    [401, "unauthenticated"],
    [403, "forbidden"],
  ] as const) {
    const { todoke } = setup(lost, problem(status, code));
    const error = await endOf(todoke.points.spend(spend));
    expect(error).toBeInstanceOf(OutcomeUnknown);
    expect(error).toMatchObject({ cause: { code } });
  }
  const late = { deadlineMs: 500 };
  for (const reply of [
    problem(429, "rate-limited", { "retry-after": "9" }),
    problem(503, "overloaded", { "retry-after": "9" }),
  ])
    expect(await endOf(setup(lost, reply).todoke.points.spend(spend, late))).toBeInstanceOf(OutcomeUnknown);
  const html404 = () => new Response("<html>", { status: 404 });
  expect(await endOf(setup(lost, html404).todoke.points.spend(spend))).toBeInstanceOf(OutcomeUnknown);

  const refused = await endOf(setup(lost, problem(409, "insufficient-points")).todoke.points.spend(spend));
  expect(isProblem(refused, "insufficient-points")).toBe(true);
});

test.each([
  [503, "unavailable", Problem],
  [503, "overloaded", Problem],
  [429, "rate-limited", Problem],
  [503, "outcome-unknown", OutcomeUnknown],
  [503, "POINTS_UNAVAILABLE", OutcomeUnknown],
  [504, "POINTS_TIMEOUT", OutcomeUnknown],
  [409, "idempotency-in-progress", OutcomeUnknown],
])("a command that ends with %i %s ends with the right error", async (status, code, kind) => {
  const { todoke } = setup(problem(status, code, { "retry-after": "60" }));
  expect(await endOf(todoke.points.spend(spend))).toBeInstanceOf(kind);
});

test("a Retry-After past the deadline ends the call at once", async () => {
  const { todoke, sent } = setup(problem(429, "rate-limited", { "retry-after": "31" }));
  const error = await endOf(todoke.points.spend(spend));
  expect(isProblem(error, "rate-limited") && error.retryAfterMs).toBe(31_000);
  expect(sent).toHaveLength(1);
});

test("a command without a key is sent again only if it was not carried out", async () => {
  const heartbeat = { ticket_id: "t_1" };
  const lostOne = setup(lost);
  expect(await endOf(lostOne.todoke.matchmaking.heartbeatTicket(heartbeat))).toBeInstanceOf(OutcomeUnknown);
  expect(lostOne.sent).toHaveLength(1);
  const limited = setup(problem(429, "rate-limited", soon), json({ status: "QUEUED" }));
  await limited.todoke.matchmaking.heartbeatTicket(heartbeat);
  expect(limited.sent).toHaveLength(2);
  // DELETE, PUT, and batches whose items have keys can be sent again.
  const cancelled = setup(lost, json({ status: "CANCELLED" }));
  await cancelled.todoke.matchmaking.cancelTicket(heartbeat);
  expect(cancelled.sent).toHaveLength(2);
  const batch = setup(lost, json({ results: [] }));
  const item = { idempotency_key: "k", user_id: "u", point_amount: 1n, execute_at: "2030-01-01T00:00:00Z" };
  await batch.todoke.points.reserveBatch({ items: [item] });
  expect(batch.sent).toHaveLength(2);
});

test("what an earlier attempt may have deleted is not reported as never found", async () => {
  const { fetch, sent } = fakeFetch(lost, problem(404, "session-not-found"));
  const me = createClient({ gateway: "https://play.example", session: "tds_1", fetch, retryBaseMs: 1 });
  expect(await endOf(me.gateway.endSession({ session_id: "s" }))).toBeInstanceOf(OutcomeUnknown);
  expect(sent).toHaveLength(2);
  expect(isProblem(await endOf(me.gateway.endSession({ session_id: "s" })), "session-not-found")).toBe(true);
});

test("a read is retried, and ends with its own error", async () => {
  const { todoke, sent } = setup(lost, cutBody, json({ balance: 1 }));
  expect(await todoke.points.getBalance({ user_id: "u_1" })).toEqual({ balance: 1n });
  expect(sent).toHaveLength(3);
  const error = await endOf(setup(lost).todoke.points.getBalance({ user_id: "u_1" }, { deadlineMs: 20 }));
  expect(error).toBeInstanceOf(NoAnswer);
});

test("an attempt ends after its time, also in the body, and the call at its deadline", async () => {
  const hangingBody = ({ signal }: Request) =>
    new Response(
      new ReadableStream({
        start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      }),
    );
  for (const hanging of [silence, hangingBody]) {
    const { todoke, sent } = setup(hanging, done);
    await todoke.points.spend(spend, { tryMs: 20 });
    expect(sent).toHaveLength(2);
    const { todoke: never } = setup(hanging);
    const error = await endOf(never.points.spend(spend, { deadlineMs: 30 }));
    expect(error).toBeInstanceOf(OutcomeUnknown);
    expect(error).toMatchObject({ cause: { name: "TimeoutError" } });
  }
});

test("an abort ends a call at once: before it, in an attempt, and in the pause between two", async () => {
  const before = setup(done);
  const gone = AbortSignal.abort(new Error("left"));
  expect(await endOf(before.todoke.points.spend(spend, { signal: gone }))).toMatchObject({ message: "left" });
  expect(before.sent).toHaveLength(0);

  for (const reply of [silence, problem(503, "outcome-unknown", { "retry-after": "20" })]) {
    const leave = new AbortController();
    const { todoke, sent } = setup(reply);
    const ended = endOf(todoke.points.spend(spend, { key: "k", signal: leave.signal }));
    await expect.poll(() => sent.length).toBe(1);
    leave.abort(new Error("left"));
    expect(await ended).toMatchObject({ name: "OutcomeUnknown", key: "k", cause: { message: "left" } });
  }
  const leave = new AbortController();
  const { todoke, sent } = setup(silence);
  const ended = endOf(todoke.points.getBalance({ user_id: "u" }, { signal: leave.signal }));
  await expect.poll(() => sent.length).toBe(1);
  leave.abort(new Error("left"));
  expect(await ended).toMatchObject({ message: "left" });
});

test("what cannot be sent is an error at once, and no lost attempt", async () => {
  const { todoke, sent } = setup(done);
  await expect(todoke.points.spend(spend, { key: "キー" })).rejects.toThrow(TypeError);
  for (const user_id of ["", ".", ".."])
    await expect(todoke.points.getBalance({ user_id })).rejects.toThrow("user_id must be");
  expect(sent).toHaveLength(0);
});

test("parameters are encoded, amounts are digits, and the body of an order repeats the key", async () => {
  const { todoke, sent } = setup(done);
  await todoke.points.getBalance({ user_id: "a/b?c", at: "2026-01-01T00:00:00Z" });
  await todoke.points.add({ user_id: "u", point_amount: 2n ** 63n - 1n });
  const order = { order_id: "o", instrument: "X", side: "BUY", qty: 1, price: null, requested_at: "t" } as never;
  await todoke.orders.accept(order, { key: "k" });
  expect(sent[0]?.url).toBe("http://points.example/v1/points/users/a%2Fb%3Fc/balance?at=2026-01-01T00%3A00%3A00Z");
  expect(JSON.parse(sent[1]?.body ?? "")).toEqual({ user_id: "u", point_amount: "9223372036854775807" });
  expect(JSON.parse(sent[2]?.body ?? "")).toMatchObject({ order_id: "o", idempotency_key: "k" });
});

test("a page is awaited, and all items of all pages are iterated", async () => {
  const pages = [
    json({ transactions: [{ version: 3 }, { version: 2 }], next_cursor: "c" }),
    json({ transactions: [{ version: 1 }] }),
  ];
  const { todoke, sent } = setup(...pages);
  const versions: bigint[] = [];
  for await (const { version } of todoke.points.listStatement({ user_id: "u" })) versions.push(version);
  expect(versions).toEqual([3n, 2n, 1n]);
  expect(sent.map(({ url }) => new URL(url).search)).toEqual(["", "?cursor=c"]);
  expect((await setup(...pages).todoke.points.listStatement({ user_id: "u" })).transactions).toHaveLength(2);
});

test("a replay says so", async () => {
  const { todoke } = setup(json({}, { "idempotency-replayed": "true" }));
  const { replayed, attempts, response } = await todoke.points.spend(spend).withResponse();
  expect([replayed, attempts, response.status]).toEqual([true, 1, 200]);
});

test("a browser is known by its cookie and sends the header that a form cannot; a program sends its session", async () => {
  const { fetch, sent } = fakeFetch(json({}));
  await createClient({ gateway: "https://play.example", fetch, language: "ja" }).gateway.logOut();
  await createClient({ gateway: "https://play.example", session: "tds_1", fetch }).gateway.getMe();
  expect(sent[0]?.headers).toMatchObject({ "x-todoke-request": "1", "accept-language": "ja" });
  expect(sent[0]?.headers).not.toHaveProperty("authorization");
  expect(sent[1]?.headers).toMatchObject({ authorization: "Bearer tds_1" });
  expect(sent[1]?.headers).not.toHaveProperty("x-todoke-request");
});

test("a change can name the version that was read", async () => {
  const { fetch, sent } = fakeFetch(json({}));
  const me = createClient({ gateway: "https://play.example", session: "tds_1", fetch });
  await me.account.updateUser({ user_id: "u", display_name: "Alice" }, { ifMatch: '"3"' });
  expect(sent[0]?.headers["if-match"]).toBe('"3"');
});
