/** Orders through real processes and a broker simulator: responses, history, restarts, trading state, cancels and resolution. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import {
  cancel,
  get,
  longWait,
  openOrders,
  placeOrder,
  sampleOrder,
  setTradingState,
  writeInstruments,
} from "./orders.ts";

const long = { timeout: 600_000 };

test("POST /do/order answers 201, 200, 409, 422, 429 and 503 as documented", long, async () => {
  await using setup = await openOrders();
  const at = await setup.serve();
  const first = await placeOrder(at, sampleOrder("k-1"));
  expect(first).toMatchObject({ status: 201, body: { status: "accepted", order_id: "o-k-1", idempotency_key: "k-1" } });
  await setup.waitForStatus("k-1", "succeeded");
  const again = await placeOrder(at, sampleOrder("k-1"));
  expect(again).toMatchObject({ status: 200, body: { status: "succeeded", result: { status: "filled" } } });
  expect(again.body.request_digest).toBe(first.body.request_digest);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await placeOrder(at, sampleOrder("k-1", { trace_id: "t-9" }))).toMatchObject({ status: 200 });

  const rejected = async (body: ReturnType<typeof sampleOrder>, key?: string) => {
    const { status, body: problem } = await placeOrder(at, body, key);
    return [status, problem.code];
  };
  expect(await rejected(sampleOrder("k-1", { qty: "0.6" }))).toEqual([409, "idempotency-conflict"]);
  expect(await rejected(sampleOrder("k-2", { order_id: "o-k-1" }))).toEqual([409, "order-id-used"]);
  expect(await rejected(sampleOrder("k-2"), "k-3")).toEqual([422, "idempotency-key-mismatch"]);
  expect(await rejected(sampleOrder("k-2", { instrument: "XRP-USD" }))).toEqual([422, "instrument-not-allowed"]);
  expect(await rejected(sampleOrder("k-2", { qty: "0.55" }))).toEqual([422, "quantity-not-allowed"]);
  expect(await rejected(sampleOrder("k-2", { qty: "10.1" }))).toEqual([422, "limit-exceeded"]);

  const slow = await setup.serve({ ORDERS_ROLES: "api", ORDERS_INSTRUMENTS: writeInstruments(setup.folder, 1) });
  // A second in the future does not pass, so all orders count in it.
  await setup.db.query(`update order_rate set counted_at = now() + interval '1 hour', taken = 0`);
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => placeOrder(slow, sampleOrder(`many-${n}`))));
  const tooMany = many.find(({ status }) => status === 429);
  expect(tooMany).toMatchObject({ body: { code: "order-rate-exceeded" } });
  expect(tooMany?.headers.get("retry-after")).toBe("1");
  expect(many.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(429)]);

  expect((await setTradingState(at, "halt")).status).toBe(200);
  const halted = await placeOrder(at, sampleOrder("k-4"));
  expect(halted).toMatchObject({ status: 503, body: { code: "trading-halted" } });
  expect(halted.headers.get("retry-after")).not.toBeNull();
  expect((await placeOrder(at, sampleOrder("k-1"))).text).toBe(again.text);
});

test("with required reconciliation, new orders get 503 while it fails, and known keys are replayed", long, async () => {
  await using setup = await openOrders({ settings: { ORDERS_REQUIRE_RECONCILIATION: "true" } });
  const at = await setup.serve({ ORDERS_ROLES: "api" });
  // A reconciler runs as soon as it starts.
  const reconciler = () => setup.launch({ ORDERS_ROLES: "reconciler" });
  const lastRun = async () => (await setup.db.query(`select last_ok_at, last_error from reconciliations`)).rows[0];
  const isTaken = (key: string) => async () => (await placeOrder(at, sampleOrder(key))).status === 201;

  const refused = await placeOrder(at, sampleOrder("k-1"));
  expect(refused).toMatchObject({ status: 503, body: { code: "reconciliation-failing" } });
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(await setup.getStatus("k-1")).toBeUndefined();
  const first = await reconciler();
  await until("reconciliation succeeded and the order is accepted", isTaken("k-1"), longWait);

  first.signal("SIGKILL");
  await first.exited;
  await setup.simulator.kill();
  await setup.db.query(`update reconciliations set last_ok_at = last_ok_at - interval '4 minutes'`);
  await reconciler();
  await until("a reconciliation failed", async () => (await lastRun())?.last_error !== null, longWait);
  expect(await placeOrder(at, sampleOrder("k-2"))).toMatchObject({
    status: 503,
    body: { code: "reconciliation-failing" },
  });
  expect(await placeOrder(at, sampleOrder("k-1"))).toMatchObject({ status: 200, body: { status: "accepted" } });

  await setup.simulator.start();
  await reconciler();
  await until("reconciliation succeeded again", isTaken("k-2"), longWait);
});

test("the history has every transition, and responses are the same after a full restart", long, async () => {
  await using setup = await openOrders();
  const at = await setup.serve();
  const lives = [
    ["filled", [], "pending>sending>succeeded"],
    ["busy", ["busy"], "pending>sending>failed>pending>sending>succeeded"],
    ["refused", ["reject"], "pending>sending>aborted"],
    [
      "given-up",
      ["busy", "rate-limited", "busy"],
      "pending>sending>failed>pending>sending>failed>pending>sending>aborted",
    ],
    ["answer-lost", ["lost-after"], "pending>sending>unknown>succeeded"],
    ["error-though-taken", ["error-after"], "pending>sending>unknown>succeeded"],
    ["confirmed-twice", ["already"], "pending>sending>succeeded"],
    ["request-lost", ["lost-before"], "pending>sending>unknown>pending>sending>succeeded"],
  ] as const;
  // One after the other, because the simulator applies faults to the next orders.
  for (const [key, faults] of lives) {
    await setup.simulator.fault(...faults);
    expect((await placeOrder(at, sampleOrder(key))).status).toBe(201);
    if (key === "request-lost") {
      await setup.waitForStatus(key, "unknown");
      await setup.skipHour();
    }
    await setup.waitUntilAllEnded();
  }
  for (const [key, , steps] of lives) {
    // While an order is unresolved, the broker may be asked more than once.
    expect((await setup.statusHistory(key)).replace(/(?:unknown>)+/g, "unknown>"), key).toBe(steps);
  }
  const { broker, local } = await setup.takenOrders();
  expect(broker).toEqual(local);
  expect(local).toHaveLength(6);
  const reasons = await Promise.all(
    ["refused", "given-up"].map(async (key) => (await placeOrder(at, sampleOrder(key))).body),
  );
  expect(reasons).toMatchObject([
    { status: "failed", reason_code: "BROKER_REJECTED" },
    { status: "failed", reason_code: "BROKER_DOWN" },
  ]);

  const before = await Promise.all(lives.map(async ([key]) => (await placeOrder(at, sampleOrder(key))).text));
  at.signal("SIGKILL");
  await at.exited;
  await setup.simulator.kill();
  await setup.simulator.start();
  const restarted = await setup.serve();
  const repeats = await Promise.all(lives.map(([key]) => placeOrder(restarted, sampleOrder(key))));
  expect(repeats.map(({ status }) => status)).toEqual(lives.map(() => 200));
  expect(repeats.map(({ text }) => text)).toEqual(before);
  expect((await setup.takenOrders()).broker).toEqual(broker);
});

test("a halt survives a restart; unsent orders can be cancelled, and a resume sends the rest", long, async () => {
  await using setup = await openOrders();
  const api = await setup.serve({ ORDERS_ROLES: "api" });
  for (const key of ["wanted", "unwanted"]) expect((await placeOrder(api, sampleOrder(key))).status).toBe(201);
  const other = sampleOrder("other", { instrument: "ETH-USD", qty: "2", price: "3000" });
  expect((await placeOrder(api, other)).status).toBe(201);
  expect(await cancel(api, "unwanted")).toMatchObject({ status: 200, body: { status: "aborted" } });
  expect(await cancel(api, "unwanted")).toMatchObject({ status: 200 });
  expect(await setup.command("halt", "BTC-USD", "--reason", "odd prices")).toMatchObject({ code: 0 });

  for (let start = 0; start < 2; start++) {
    const at = await setup.serve();
    expect(await placeOrder(at, sampleOrder(`new-${start}`))).toMatchObject({
      status: 503,
      body: { code: "trading-halted" },
    });
    // It has sent the order that is not halted, so it has run.
    await setup.waitForStatus("other", "succeeded");
    // A new sender may claim it and releases it at the last check.
    await setup.waitForStatus("wanted", "pending");
    expect(setup.simulator.taken()).toHaveLength(1);
    at.signal("SIGKILL");
    await at.exited;
    await setup.expireLeases();
  }
  const at = await setup.serve();
  expect((await setup.command("resume", "BTC-USD", "--reason", "fixed")).code).toBe(0);
  await setup.waitForStatus("wanted", "succeeded");
  expect(await setup.statusHistory("unwanted")).toBe("pending>aborted");
  const { broker, local } = await setup.takenOrders();
  expect(broker).toEqual(local);
  expect(local).toHaveLength(2);

  // An unfilled order is cancelled at the broker.
  expect((await placeOrder(at, sampleOrder("open", { time_in_force: "GTC" }))).status).toBe(201);
  await setup.waitForStatus("open", "succeeded");
  expect((await cancel(at, "open")).status).toBe(202);
  const isCancelled = async () => (await get(at, "/do/order/open")).body.cancel === "done";
  await until("the broker has cancelled it", isCancelled, longWait);
  expect((await cancel(at, "wanted")).status).toBe(202);
  const isTooLate = async () => (await get(at, "/do/order/wanted")).body.cancel === "refused";
  await until("the broker says that it is too late", isTooLate, longWait);
});

test("an unresolved order stays listed until an operator resolves it", long, async () => {
  // Window 0: the broker may take an order at any later time.
  await using setup = await openOrders({ settings: { ORDERS_BROKER_WINDOW_MS: "0" } });
  const at = await setup.serve();
  for (const key of ["taken", "not-taken"]) {
    await setup.simulator.fault("lost-before");
    expect((await placeOrder(at, sampleOrder(key))).status).toBe(201);
    await setup.waitForStatus(key, "unknown");
  }
  expect(await placeOrder(at, sampleOrder("taken"))).toMatchObject({
    status: 200,
    body: { status: "accepted", unresolved: true },
  });
  const waiting = (await get(at, "/v1/orders/unresolved")).body.orders as { idempotency_key: string }[];
  expect(waiting.map((order) => order.idempotency_key)).toEqual(["taken", "not-taken"]);
  const listed = JSON.parse((await setup.command("list", "--unresolved", "--json")).out);
  expect(listed.orders).toHaveLength(2);

  // The command fails while a worker checks the order, so it is repeated.
  const resolve = (key: string) => async () =>
    (await setup.command("resolve", key, "--as", key, "--reason", "their books", "--by", "aki", "--yes")).code === 0;
  for (const key of ["taken", "not-taken"]) await until(`${key} is resolved`, resolve(key), longWait);
  await setup.waitUntilAllEnded();
  expect(await setup.statusHistory("not-taken")).toMatch(/^pending>sending>(?:unknown>)+pending>sending>succeeded$/);
  expect(await setup.statusHistory("taken")).toMatch(/^pending>sending>(?:unknown>)+succeeded$/);
  expect(setup.simulator.taken()).toHaveLength(1);
  const { rows } = await setup.db.query(`select "as", reason, by from order_resolutions order by resolution_id`);
  expect(rows).toEqual(["taken", "not-taken"].map((as) => ({ as, reason: "their books", by: "aki" })));
});
