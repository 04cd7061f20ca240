import { decodeEvent, encodeEvent } from "@todoke/contracts";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Broker } from "../brokers/index.ts";
import { cancelOrder } from "../commands/cancel-order.ts";
import { clientOrderId } from "../order/order-request.ts";
import { followedOrders, recordFills } from "../store/order-fills.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { createSenderHarness } from "./testing/harness.ts";

/** The broker's fills can be replaced while a test runs. */
async function createFollowHarness() {
  let replacement: Broker["fills"] | undefined;
  const s = await createSenderHarness({
    broker: { fills: (id, options) => (replacement ?? s.paper.fills)(id, options) },
  });
  return {
    ...s,
    replaceFills: (fills: Broker["fills"] | undefined) => {
      replacement = fills;
    },
    /** A limit order that rests at the broker. */
    async rest(): Promise<void> {
      await s.accept([1], "USDJPY", { price: "0.01", timeInForce: "GTC" });
      await s.sender.runOnce();
    },
    async follow(): Promise<void> {
      await s.checkFillsNow();
      await s.follower.runOnce();
    },
    order: async () => {
      const [order] = await s.rows(`select o.status, execution, trim_scale(filled_qty)::text as filled_qty, version,
                                           convert_from(l.answer, 'utf8')::jsonb as response
                                      from outbox_orders o join idempo_ledger l on l.order_row_id = o.id`);
      return order;
    },
    fills: () =>
      s.rows(`select trade_id, version, trim_scale(qty)::text as qty, trim_scale(price)::text as price
                           from order_fills order by version`),
    filledEvents: async () =>
      (await s.rows(`select payload from outbox_events where event_type = 'OrderFilled' order by position`)).map(
        ({ payload }) => decodeEvent("OrderFilled", encodeEvent("OrderFilled", payload)),
      ),
  };
}

test("an order that is filled when it is taken has its fill, its event and its totals in one commit", async () => {
  await using s = await createFollowHarness();
  await s.accept([1]);
  await s.sender.runOnce();
  expect(await s.order()).toMatchObject({ status: "succeeded", execution: "filled", filled_qty: "1.5", version: 4 });
  expect(await s.fills()).toMatchObject([{ trade_id: "paper-1-1", version: 4, qty: "1.5" }]);
  const versions = await s.rows(`select event_type, version::int from outbox_events order by position`);
  expect(versions.map(({ event_type, version }) => `${event_type} ${version}`)).toEqual([
    "OrderAccepted 1",
    "OrderSucceeded 3",
    "OrderFilled 4",
  ]);
  expect(await s.rows(`select from followed_orders`)).toEqual([]);
  // The transition is the version before its fill.
  expect(await s.rows(`select place from order_status_history order by place`)).toEqual(
    [1, 2, 3].map((place) => ({ place })),
  );
});

test("partial fills of a resting order are recorded as they come, exactly, until it is filled", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  expect(await s.order()).toMatchObject({ execution: "open", filled_qty: "0" });
  await s.follow();
  expect(await s.fills()).toEqual([]);
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  await s.follow();
  expect(await s.order()).toMatchObject({
    execution: "open",
    filled_qty: "0.5",
    response: { execution: "open", filled_qty: "0.5", average_price: "0.01", result: { filled_qty: "0.5" } },
  });
  await s.fillAtBroker(1, { qty: "0.25", price: "0.0075" });
  await s.fillAtBroker(1, { qty: "0.75", price: "0.0100000000000000001" });
  await s.follow();
  expect(await s.order()).toMatchObject({
    execution: "filled",
    filled_qty: "1.5",
    version: 6,
    response: { execution: "filled", filled_qty: "1.5", average_price: "0.009583333333333333" },
  });
  expect((await s.fills()).map(({ version, qty }) => `${version} ${qty}`)).toEqual(["4 0.5", "5 0.25", "6 0.75"]);
  const events = await s.filledEvents();
  expect(events.map((event) => [event.version, event.tradeId, event.fillQty, event.filledQty])).toEqual([
    [4n, "paper-1-1", "0.5", "0.5"],
    [5n, "paper-1-2", "0.25", "0.75"],
    [6n, "paper-1-3", "0.75", "1.5"],
  ]);
  expect(events.map((event) => event.averagePrice)).toEqual(["0.01", "0.009166666666666666", "0.009583333333333333"]);
  // It has ended: no worker asks again.
  await s.db.query(`update followed_orders set next_retry_at = now()`);
  expect((await s.follower.runOnce()).claimed).toBe(0);
  const { rows } = await s.db.query(
    `select result_digest = 'sha256:' || encode(sha256(answer), 'hex') as matches from idempo_ledger`,
  );
  expect(rows).toEqual([{ matches: true }]);
});

test("a fill that the broker reports again counts once", async () => {
  await using s = await createFollowHarness();
  // The broker ignores the position, and repeats the fill within the reply.
  s.replaceFills(async (id, { signal }) => {
    const found = await s.paper.fills(id, { after: null, signal });
    return found.kind === "fills" ? { ...found, fills: [...found.fills, ...found.fills] } : found;
  });
  await s.rest();
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  for (let n = 0; n < 3; n++) await s.follow();
  expect(await s.order()).toMatchObject({ execution: "open", filled_qty: "0.5", version: 4 });
  expect(await s.filledEvents()).toHaveLength(1);
});

test("a worker whose lease was lost records nothing, and the next one records every fill", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  await s.checkFillsNow();
  const claim = (leaseMs: number) =>
    followedOrders.claim(s.db, { limit: 1, leaseMs, worker: "test", queue: "paper" }).then(([claimed]) => claimed);
  const slow = await claim(1);
  const found = await s.paper.fills(slow?.clientOrderId as string, {
    after: null,
    signal: AbortSignal.timeout(60_000),
  });
  let next: Awaited<ReturnType<typeof claim>>;
  await until("the lease has expired", async () => {
    next = await claim(120_000);
    return next !== undefined;
  });
  if (!slow || !next || found.kind !== "fills") throw new Error("not claimed");
  expect(await recordFills(s.db, slow, { ...found, delayMs: 0, delayAfterFillMs: 0 })).toMatchObject({
    applied: false,
  });
  expect(await s.fills()).toEqual([]);
  expect(await recordFills(s.db, next, { ...found, delayMs: 0, delayAfterFillMs: 0 })).toEqual({
    applied: true,
    fills: 1,
    ended: false,
  });
  expect(await s.order()).toMatchObject({ filled_qty: "0.5" });
});

test("fills before a cancel are kept, and the order ends as cancelled", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  await cancelOrder({ db: s.db, onAborted: () => {}, onRequested: () => {} })({
    caller: "shop",
    idempotencyKey: "key-1",
  });
  await s.fillAtBroker(1, { qty: "0.25", price: "0.01" });
  await s.db.query(`update followed_orders set next_retry_at = now() + interval '1 hour'`);
  await cancelOrders(s).runOnce();
  // The cancel makes the check due.
  await s.follower.runOnce();
  expect(await s.order()).toMatchObject({
    status: "succeeded",
    execution: "cancelled",
    filled_qty: "0.75",
    response: { execution: "cancelled", filled_qty: "0.75" },
  });
  expect(await s.rows(`select status from cancel_requests`)).toEqual([{ status: "done" }]);
});

test("more than was ordered is never recorded: the order stays open, and the error is kept", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  s.replaceFills(async (id, options) => {
    const found = await s.paper.fills(id, options);
    return found.kind === "fills" ? { ...found, fills: found.fills.map((fill) => ({ ...fill, qty: "1.51" })) } : found;
  });
  await s.follow();
  expect(await s.order()).toMatchObject({ execution: "open", filled_qty: "0" });
  const [{ last_error }] = (await s.rows(`select last_error from followed_orders`)) as [{ last_error: string }];
  expect(last_error).toContain("order_is_not_overfilled");
  expect(await s.filledEvents()).toEqual([]);
});

test("an order ends only when every fill that the broker counts is recorded", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  await s.follow();
  await s.fillAtBroker(1, { qty: "0.25", price: "0.01" });
  await s.paper.cancel(clientOrderId("shop", "key-1"), AbortSignal.timeout(60_000));
  // The last fill is not visible yet, though the order has ended and counts it.
  s.replaceFills(async (id, options) => {
    const found = await s.paper.fills(id, options);
    return found.kind === "fills" ? { ...found, fills: [], position: "7" } : found;
  });
  await s.follow();
  expect(await s.order()).toMatchObject({ execution: "open", filled_qty: "0.5" });
  s.replaceFills(undefined);
  await s.follow();
  expect(await s.order()).toMatchObject({ execution: "cancelled", filled_qty: "0.75" });
});

test("the broker is asked soon after a fill, and ever less often without one", async () => {
  await using s = await createFollowHarness();
  await s.rest();
  const delayAfterCheck = async () => {
    await s.follow();
    const [row] = await s.rows(
      `select checks, extract(epoch from next_retry_at - clock_timestamp())::float8 as seconds from followed_orders`,
    );
    return row as { checks: number; seconds: number };
  };
  for (let n = 0; n < 6; n++) await s.follow();
  const idle = await delayAfterCheck();
  expect(idle.checks).toBe(7);
  expect(idle.seconds).toBeGreaterThan(5);
  await s.fillAtBroker(1, { qty: "0.5", price: "0.01" });
  const active = await delayAfterCheck();
  expect(active.checks).toBe(0);
  expect(active.seconds).toBeLessThanOrEqual(0.5);
});

test("a broker that does not reply is asked again, and nothing changes", async () => {
  await using s = await createFollowHarness();
  s.replaceFills(async () => ({ kind: "unknown", reason: "no reply" }));
  await s.rest();
  await s.follow();
  expect(await s.order()).toMatchObject({ execution: "open", filled_qty: "0" });
  expect(await s.rows(`select status, last_error from followed_orders`)).toEqual([
    { status: "open", last_error: "no reply" },
  ]);
});
