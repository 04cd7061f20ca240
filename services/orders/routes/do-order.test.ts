import { decodeEvent, encodeEvent } from "@todoke/contracts";
import { openFaultProxy } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { readInstruments } from "../instruments/index.ts";
import { clientOrderId, requestDigest } from "../order/order-request.ts";
import type { OrderRow } from "../store/orders.ts";
import { transitionOrder } from "../store/transition-order.ts";
import { bodyOf, createHarness, rowCounts } from "../testing.ts";

test("the first request returns 201; a replay returns 200 and the same bytes", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  const first = await order(bodyOf("k1"));
  expect([first.statusCode, first.headers["content-type"]]).toEqual([201, "application/json; charset=utf-8"]);
  expect(first.json()).toEqual({
    order_id: "o-k1",
    idempotency_key: "k1",
    status: "accepted",
    request_digest: requestDigest(bodyOf("k1")),
    client_order_id: clientOrderId("desk", "k1"),
    accepted_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
  const again = await order({ ...bodyOf("k1"), trace_id: "another" });
  expect([again.statusCode, again.headers["idempotency-replayed"], again.body]).toEqual([200, "true", first.body]);
  expect(await t.rows()).toEqual(rowCounts(1));
  const { rows } =
    await t.db.query(`select status, seen_count::int, http_status, extract(epoch from expires_at - first_seen_at)::int / 3600 as hours,
    convert_from(answer, 'utf8') as answer from idempo_ledger`);
  expect(rows).toEqual([
    {
      status: "accepted",
      seen_count: 2,
      http_status: 201,
      hours: 48,
      answer: first.body,
    },
  ]);
});

test("an order is stored exactly as it was sent, and published as a readable event", async () => {
  await using t = await createHarness();
  const { order, get } = await t.process();
  await order(bodyOf("k1", { qty: "0.3", price: "0.5", tags: ["Cafe\u0301"], trace_id: "t-1" }));
  const shown = (await get("/do/order/k1")).json();
  expect(shown).toMatchObject({
    caller: "desk",
    status: "pending",
    qty: "0.3",
    price: "0.5",
    time_in_force: "IOC",
    tags: ["Café"],
    adapter: "paper",
    attempts: 0,
    cancel: null,
  });
  expect((await get(`/v1/orders/${shown.id}`)).json()).toEqual(shown);
  const { rows } = await t.db.query(`select qty::text, price::text, order_request_json from outbox_orders`);
  expect(rows).toMatchObject([{ qty: "0.3", price: "0.5", order_request_json: { qty: "0.3", trace_id: "t-1" } }]);
  const events = await t.db.query(`select event_type, aggregate_key, version::int, payload from outbox_events`);
  expect(events.rows).toMatchObject([
    { event_type: "OrderAccepted", aggregate_key: clientOrderId("desk", "k1"), version: 1 },
  ]);
  const { payload } = events.rows[0];
  expect(decodeEvent("OrderAccepted", encodeEvent("OrderAccepted", payload))).toMatchObject({
    caller: "desk",
    orderId: "o-k1",
    qty: "0.3",
    price: "0.5",
    traceId: "t-1",
  });
});

test("an order that names a user_id returns it from every read and carries it in its events", async () => {
  await using t = await createHarness();
  const { order, get, cancel } = await t.process();
  const [without, named] = [bodyOf("without"), bodyOf("with", { user_id: "u_1" })];
  for (const body of [without, named]) expect((await order(body)).statusCode).toBe(201);
  expect((await get("/do/order/without")).json().user_id).toBeNull();
  const shown = (await get("/do/order/with")).json();
  expect(shown.user_id).toBe("u_1");
  expect((await get(`/v1/orders/${shown.id}`)).json()).toEqual(shown);
  expect((await get("/v1/orders")).json().orders.map((each: OrderRow) => each.user_id)).toEqual(["u_1", null]);
  await cancel("with");
  const { rows } = await t.db.query(
    `select event_type as type, payload from outbox_events order by event_type, event_id`,
  );
  const events = rows.map(({ type, payload }) => decodeEvent<"OrderAccepted">(type, encodeEvent(type, payload)));
  expect(events.map(({ eventType, caller, userId }) => [eventType, caller, userId])).toEqual([
    ["OrderAccepted", "desk", undefined],
    ["OrderAccepted", "desk", "u_1"],
    ["OrderFailed", "desk", "u_1"],
  ]);
});

test("64 parallel requests with one key at two processes: one order, one 201, equal bytes", async () => {
  await using t = await createHarness();
  const processes = [await t.process(), await t.process()];
  const answers = await Promise.all(Array.from({ length: 64 }, (_, i) => processes[i % 2]?.order(bodyOf("one"))));
  expect(answers.map((answer) => answer?.statusCode).sort()).toEqual([...Array(63).fill(200), 201]);
  expect(new Set(answers.map((answer) => answer?.body)).size).toBe(1);
  expect(await t.rows()).toEqual(rowCounts(1));
  const { rows } = await t.db.query(`select seen_count::int from idempo_ledger`);
  expect(rows).toEqual([{ seen_count: 64 }]);
});

test("200 concurrent orders at two processes are accepted once each", async () => {
  await using t = await createHarness();
  const processes = [await t.process(), await t.process()];
  const answers = await Promise.all(
    Array.from({ length: 400 }, (_, i) => processes[i % 2]?.order(bodyOf(`k${i % 200}`))),
  );
  expect(answers.filter((answer) => answer?.statusCode === 201).length).toBe(200);
  expect(answers.filter((answer) => answer?.statusCode === 200).length).toBe(200);
  expect(await t.rows()).toEqual(rowCounts(200));
});

test("a used key with another body is a conflict, even if that body is invalid", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  await order(bodyOf("k1"));
  for (const other of [{ qty: 0.6 }, { user_id: "u_1" }, { instrument: "NOTHING" }, { tags: ["a"] }]) {
    const answer = await order(bodyOf("k1", other));
    expect([answer.statusCode, answer.json().code]).toEqual([409, "idempotency-conflict"]);
  }
  expect(await t.rows()).toEqual(rowCounts(1));
  // A rejected request does not count as a replay.
  expect((await t.db.query(`select seen_count::int from idempo_ledger`)).rows).toEqual([{ seen_count: 1 }]);
});

test("a used order_id under another key returns 409, also when both are concurrent", async () => {
  await using t = await createHarness();
  const processes = [await t.process(), await t.process()];
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, i) => processes[i % 2]?.order(bodyOf(`k${i}`, { order_id: "same" }))),
  );
  expect(answers.map((answer) => answer?.statusCode).sort()).toEqual([201, ...Array(15).fill(409)]);
  expect(answers.find((answer) => answer?.statusCode === 409)?.json().code).toBe("order-id-used");
  expect(await t.rows()).toEqual(rowCounts(1));
});

test("keys of different callers are independent, and give no access to each other's orders", async () => {
  await using t = await createHarness();
  const { order, get, cancel } = await t.process();
  const [mine, theirs] = [await order(bodyOf("k1")), await order(bodyOf("k1", { qty: 1 }), { holder: "bot" })];
  expect([mine.statusCode, theirs.statusCode]).toEqual([201, 201]);
  expect(mine.json().client_order_id).not.toBe(theirs.json().client_order_id);
  expect((await get("/do/order/k1", "bot")).json().qty).toBe("1");
  const missing = [await get("/do/order/k1", "eyes"), await get("/do/order/k2"), await cancel("k2")];
  for (const answer of missing) expect([answer.statusCode, answer.json().code]).toEqual([404, "order-not-found"]);
});

test("a key of any allowed characters and length works in the path", async () => {
  await using t = await createHarness();
  const { order, get, cancel } = await t.process();
  for (const key of ["a/b?c#d%2F..~", "~".repeat(255)]) {
    expect((await order(bodyOf(key, { order_id: `o-${key.length}` }))).statusCode).toBe(201);
    expect((await get(`/do/order/${encodeURIComponent(key)}`)).json().idempotency_key).toBe(key);
    expect((await cancel(encodeURIComponent(key))).json().status).toBe("aborted");
  }
});

test("422: differing keys, unknown instruments, quantities, prices and limits", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  const mismatch = await order(bodyOf("k1"), { key: "k2" });
  expect([mismatch.statusCode, mismatch.json().code]).toEqual([422, "idempotency-key-mismatch"]);
  const cases = [
    [{ instrument: "DOGE-USD" }, "instrument-not-allowed"],
    [{ qty: "0.05" }, "quantity-not-allowed"],
    [{ qty: "0.55" }, "quantity-not-allowed"],
    [{ price: "0.25" }, "price-not-allowed"],
    [{ qty: "10.1", price: 1 }, "limit-exceeded"],
    [{ qty: 10, price: "100000.5" }, "limit-exceeded"],
    [{ risk_constraints: { max_notional: 1 } }, "limit-exceeded"],
    [{ instrument: "ETH-USD", qty: 1, price: null }, "price-required"],
  ] as const;
  for (const [more, code] of cases) {
    const answer = await order(bodyOf("k1", more));
    expect([answer.statusCode, answer.json().code]).toEqual([422, code]);
    expect(answer.json().errors).toHaveLength(1);
  }
  expect(await t.rows()).toEqual(rowCounts(0));
});

test("422: max_slippage_bps that the broker does not support; used keys are replayed", async () => {
  await using t = await createHarness();
  const limited = (key: string) => bodyOf(key, { price: null, risk_constraints: { max_slippage_bps: 10 } });
  const before = await t.process();
  expect((await before.order(limited("k1"))).statusCode).toBe(201);
  const { order } = await t.process(t.open(), { limitsSlippage: false });
  const refused = await order(limited("k2"));
  expect([refused.statusCode, refused.json().code]).toEqual([422, "slippage-not-limited"]);
  expect(refused.json().errors[0].field).toBe("body.risk_constraints.max_slippage_bps");
  expect((await order(limited("k1"))).statusCode).toBe(200);
  expect((await order({ ...limited("k3"), price: "30000.5" })).statusCode).toBe(201);
  expect(await t.rows()).toEqual(rowCounts(2));
});

test("400: schema errors name the field, and nothing is stored", async () => {
  await using t = await createHarness();
  const { order, app } = await t.process();
  const cases: [object, string][] = [
    [{ extra: 1 }, "body.extra"],
    [{ side: "HOLD" }, "body.side"],
    [{ qty: 0 }, "body.qty"],
    [{ qty: "0.00" }, "body.qty"],
    [{ qty: "-1" }, "body.qty"],
    [{ qty: "1e3" }, "body.qty"],
    [{ qty: 1e30 }, "body.qty"],
    [{ price: undefined }, "body.price"],
    [{ price: "free" }, "body.price"],
    [{ time_in_force: "DAY" }, "body.time_in_force"],
    [{ tags: Array(9).fill("a") }, "body.tags"],
    [{ tags: ["x".repeat(33)] }, "body.tags[0]"],
    [{ requested_at: "yesterday" }, "body.requested_at"],
    [{ order_id: "a b" }, "body.order_id"],
    [{ order_id: "x".repeat(65) }, "body.order_id"],
    [{ user_id: "" }, "body.user_id"],
    [{ user_id: "x".repeat(129) }, "body.user_id"],
    [{ user_id: null }, "body.user_id"],
    [{ risk_constraints: { max_loss: 1 } }, "body.risk_constraints.max_loss"],
    [{ trace_id: "x".repeat(65) }, "body.trace_id"],
  ];
  for (const [more, field] of cases) {
    const answer = await order({ ...bodyOf("k1"), ...more });
    expect([answer.statusCode, field]).toEqual([400, field]);
    expect(answer.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  const headers = { authorization: "Bearer tdk_desk", "content-type": "application/json" };
  const keyless = await app.inject({
    method: "POST",
    url: "/do/order",
    headers,
    payload: JSON.stringify(bodyOf("k1")),
  });
  expect(keyless.json().code).toBe("idempotency-key-missing");
  const rounded = JSON.stringify(bodyOf("k1")).replace('"qty":0.5', '"qty":0.50000000000000000001');
  const payload = { method: "POST", url: "/do/order", headers: { ...headers, "idempotency-key": "k1" } } as const;
  const refused = await app.inject({ ...payload, payload: rounded });
  expect([refused.statusCode, refused.json().errors[0].field]).toEqual([400, "body.qty"]);
  expect(await t.rows()).toEqual(rowCounts(0));
});

test("401 without a valid key; 403 with a key that may only read", async () => {
  await using t = await createHarness();
  const { order, halt, cancel, get } = await t.process();
  expect((await order(bodyOf("k1"), { holder: "stranger" })).statusCode).toBe(401);
  for (const answer of [
    await order(bodyOf("k1"), { holder: "eyes" }),
    await halt("halt", undefined, "eyes"),
    await cancel("k1", "eyes"),
  ])
    expect(answer.statusCode).toBe(403);
  expect((await get("/v1/orders", "eyes")).statusCode).toBe(200);
});

test("429: two processes accept no more than the limit per second; a retry is accepted", async () => {
  await using t = await createHarness();
  const text = `limits: { orders_per_second: 20 }
instruments: { BTC-USD: { min_qty: 0.1, step: 0.1, max_qty: 10, max_notional: 1000000 } }`;
  const instruments = readInstruments(text, "test.yaml");
  const processes = [await t.process(t.open(), { instruments }), await t.process(t.open(), { instruments })];
  // counted_at never goes back, so a time ahead of the clock keeps the current second from ending.
  await t.db.query(`update order_rate set counted_at = now() + interval '1 hour', taken = 3`);
  const keys = Array.from({ length: 60 }, (_, i) => `k${i}`);
  const send = async (wanted: readonly string[]) => {
    const sent = wanted.map(async (key, i) => ({ key, answer: await processes[i % 2]?.order(bodyOf(key)) }));
    return (await Promise.all(sent)).filter(({ answer }) => answer?.statusCode !== 201);
  };
  let rejected = await send(keys);
  expect(rejected.length).toBe(43);
  for (const { answer } of rejected)
    expect([answer?.statusCode, answer?.json().code, answer?.headers["retry-after"]]).toEqual([
      429,
      "order-rate-exceeded",
      "1",
    ]);
  expect(await t.rows()).toEqual(rowCounts(17));
  // Orders of an earlier second do not count.
  await t.db.query(`update order_rate set counted_at = now() - interval '2 seconds', taken = 20`);
  rejected = await send(rejected.map(({ key }) => key));
  expect(rejected.length).toBeLessThanOrEqual(23);
  while (rejected.length > 0) rejected = await send(rejected.map(({ key }) => key));
  expect(await t.rows()).toEqual(rowCounts(60));
  const { rows } = await t.db.query(
    `select count(*)::int as taken from outbox_orders group by date_trunc('second', created_at)`,
  );
  for (const { taken } of rows) expect(taken).toBeLessThanOrEqual(20);
});

test("503 while trading is halted, also after a restart; used keys are replayed", async () => {
  await using t = await createHarness();
  const before = await t.process();
  await before.order(bodyOf("known"));
  for (const mode of ["halt", "cancel-only"]) {
    expect((await before.halt(mode)).json()).toMatchObject({ scope: "*", mode, reason: "a test", set_by: "desk" });
    const { order } = await t.process();
    const answer = await order(bodyOf("k1"));
    expect([answer.statusCode, answer.json().code, answer.headers["retry-after"]]).toEqual([
      503,
      "trading-halted",
      "5",
    ]);
    expect((await order(bodyOf("known"))).statusCode).toBe(200);
    expect((await order(bodyOf("known", { qty: 1 }))).statusCode).toBe(409);
  }
  await before.halt("active");
  await before.halt("halt", "ETH-USD");
  expect((await before.order(bodyOf("k1", { instrument: "ETH-USD", qty: 1 }))).statusCode).toBe(503);
  expect((await before.order(bodyOf("k1"))).statusCode).toBe(201);
  expect(await t.rows()).toEqual(rowCounts(2));
  expect((await before.get("/v1/orders/trading-state")).json().states).toMatchObject([
    { scope: "*", mode: "active" },
    { scope: "ETH-USD", mode: "halt" },
  ]);
  const { rows } = await t.db.query(
    `select scope, from_mode, to_mode, set_by from trading_state_audit order by audit_id`,
  );
  expect(rows.map((row) => Object.values(row).join(" "))).toEqual([
    "* active halt desk",
    "* halt cancel-only desk",
    "* cancel-only active desk",
    "ETH-USD active halt desk",
  ]);
  const typo = await before.halt("halt", "ETHUSD");
  expect([typo.statusCode, typo.json().code]).toEqual([422, "instrument-not-allowed"]);
});

test("503 while reconciliation is required and too old", async () => {
  await using t = await createHarness();
  const { order } = await t.process(t.open(), { reconciledWithinMs: 180_000 });
  await t.db.query(`insert into reconciliations (adapter, last_ok_at) values ('another', now())`);
  const answer = await order(bodyOf("k1"));
  expect([answer.statusCode, answer.json().code]).toEqual([503, "reconciliation-failing"]);
  await t.db.query(`insert into reconciliations (adapter, last_ok_at) values ('paper', now() - interval '4 minutes')`);
  expect((await order(bodyOf("k1"))).statusCode).toBe(503);
  await t.db.query(`update reconciliations set last_ok_at = now() - interval '1 minute' where adapter = 'paper'`);
  expect((await order(bodyOf("k1"))).statusCode).toBe(201);
  await t.db.query(`update reconciliations set last_ok_at = null`);
  expect((await order(bodyOf("k1"))).statusCode).toBe(200);
  expect(await t.rows()).toEqual(rowCounts(1));
});

test.each(["request", "answer"] as const)(
  "503 if the %s of the commit is lost, and a retry with the same key leaves one order",
  async (lost) => {
    await using t = await createHarness();
    await using wire = await openFaultProxy(t.url);
    const { order } = await t.process(t.open({ url: wire.url }));
    await order(bodyOf("warm-up"));
    wire.cutNext("accept orders", lost);
    const unknown = await order(bodyOf("k1"));
    expect([unknown.statusCode, unknown.json().code]).toEqual([503, "outcome-unknown"]);
    const retried = await order(bodyOf("k1"));
    expect(retried.statusCode).toBe(lost === "answer" ? 200 : 201);
    expect(await t.rows()).toEqual(rowCounts(2));
  },
);

test("a replay returns the result after a restart, and after the ledger has deleted the key", async () => {
  await using t = await createHarness();
  const before = await t.process();
  for (const key of ["good", "bad"]) await before.order(bodyOf(key));
  const { rows } = await t.db.query(
    `update outbox_orders set status = 'sending', lease_until = now() + interval '1 minute', lease_epoch = 1, attempts = 1,
            locked_by = 'test' returning id::text, idempotency_key as key`,
  );
  const idOf = (key: string) => rows.find((row) => row.key === key).id;
  const step = { epoch: "1", from: ["sending"] } as const;
  const result = { filled_qty: "0.5", price: "30000.5" };
  await transitionOrder(t.db, { ...step, id: idOf("good"), to: "succeeded", brokerOrderId: "b-1", result });
  await transitionOrder(t.db, { ...step, id: idOf("bad"), to: "aborted", code: "BROKER_REJECTED", reason: "no funds" });
  const { order } = await t.process();
  const [good, bad] = [await order(bodyOf("good")), await order(bodyOf("bad"))];
  expect([good.statusCode, bad.statusCode]).toEqual([200, 200]);
  expect(good.json()).toMatchObject({
    status: "succeeded",
    broker_order_id: "b-1",
    result,
    ended_at: expect.any(String),
  });
  expect(bad.json()).toMatchObject({ status: "failed", reason_code: "BROKER_REJECTED", reason: "no funds" });
  const ledger = await t.db.query(`select status, result_digest = 'sha256:' || encode(sha256(answer), 'hex') as exact
    from idempo_ledger order by status`);
  expect(ledger.rows).toEqual([
    { status: "failed", exact: true },
    { status: "succeeded", exact: true },
  ]);
  await t.db.query(`delete from idempo_ledger`);
  expect([(await order(bodyOf("good"))).body, (await order(bodyOf("bad"))).body]).toEqual([good.body, bad.body]);
  expect((await order(bodyOf("good", { qty: 1 }))).statusCode).toBe(409);
});
