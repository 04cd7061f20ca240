import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { cancelOrder } from "../commands/cancel-order.ts";
import { clientOrderId } from "../order/order-request.ts";
import { startSender } from "./start-sender.ts";
import { crashSender, createSenderHarness, sendAfter } from "./testing/harness.ts";

test("while all trading is halted, orders that a dead sender may have sent are checked, not sent", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1, 2]);
  const order = {
    instrument: "USDJPY",
    side: "BUY",
    qty: "1.50",
    price: null,
    timeInForce: "IOC",
    maxSlippageBps: null,
  } as const;
  const options = { timestamp: s.paper.clock(), signal: AbortSignal.timeout(60_000) };
  await s.paper.send({ ...order, clientOrderId: clientOrderId("shop", "key-1") }, options);
  await crashSender(s, { dispatched: true });
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 2 });
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "unknown", attempts: 1 }]);
  await s.passWindow();
  await s.checker.runOnce();
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "pending" }]);
  expect(s.sends).toEqual([]);
});

test("while all trading is halted, an order that a dead sender did not send is not claimed", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await crashSender(s, { dispatched: false });
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  expect(await s.states()).toMatchObject([{ status: "sending", attempts: 1 }]);
  await s.trade("active");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
});

test("a halt after the claim releases the order without an attempt", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  await s.trade("cancel-only");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  await s.trade("active");
  const run = await sendAfter(s, () => s.trade("halt"));
  expect(run).toMatchObject({ claimed: 1, release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
  await s.trade("active");
  await s.makeDue();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

test("an order of a halted instrument waits without a transition and blocks no other", async () => {
  await using s = await createSenderHarness();
  await s.accept([1], "EURUSD");
  await s.accept([2], "USDJPY");
  await s.trade("halt", "EURUSD");
  for (let run = 0; run < 3; run++) {
    await s.sender.runOnce();
    await s.makeDue();
  }
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }, { status: "succeeded" }]);
  expect(await s.steps()).toBe("pending");
});

test("a halt of its instrument after the claim stops an order, a halt of another does not", async () => {
  await using s = await createSenderHarness();
  await s.accept([1], "EURUSD");
  expect(await sendAfter(s, () => s.trade("halt", "EURUSD"))).toMatchObject({ claimed: 1, release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
  await s.trade("active", "EURUSD");
  await s.makeDue();
  await sendAfter(s, () => s.trade("halt", "USDJPY"));
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

test("a change of the trading state wakes the sender", async () => {
  await using s = await createSenderHarness({ settings: { pollMs: 60_000 } });
  await using wakeups = openWakeups({ url: s.url });
  await wakeups.listening;
  await s.accept([1], "EURUSD");
  await s.trade("halt", "EURUSD");
  const topics = { orders: "orders", cancels: "cancels", trading: "trading" };
  await using _ = startSender({ ...s, wakeups, topics });
  await until("it is postponed", async () => {
    wakeups.signal("orders");
    return (await s.rows(`select from outbox_orders where next_retry_at > clock_timestamp()`)).length === 1;
  });
  // So late that only the signal can make it due.
  await s.db.query(`update outbox_orders set next_retry_at = now() + interval '1 hour'`);
  await s.trade("active", "EURUSD");
  wakeups.signal("trading");
  await until("it is sent", async () => (await s.states())[0]?.status === "succeeded");
});

test("an order that may have been sent before stays unresolved when it is halted or cancelled", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  await s.trade("halt");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown" }]);
  await s.trade("active");
  await s.db.query(`update outbox_orders set status = 'sending', lease_until = now()`);
  await cancelOrder({ db: s.db, onAborted: () => {}, onRequested: () => {} })({
    caller: "shop",
    idempotencyKey: "key-1",
  });
  await s.db.query(`update cancel_requests set status = 'sending', lease_until = now() + interval '1 hour'`);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown" }]);
  expect(s.sends).toEqual([]);
});
