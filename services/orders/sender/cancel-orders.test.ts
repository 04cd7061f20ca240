import { expect, test } from "vitest";
import { faultPlan } from "../brokers/faults.ts";
import type { Broker } from "../brokers/index.ts";
import { openPaperBroker } from "../brokers/paper/index.ts";
import { cancelOrder } from "../commands/cancel-order.ts";
import { askBroker } from "./ask-broker.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { sendOrders } from "./send-orders.ts";
import { type Tell, tellNobody } from "./tell.ts";
import { quick, setup, windowMs } from "./testing.ts";

async function stage(more: Partial<Broker> = {}) {
  const t = await setup();
  const plan = faultPlan();
  const broker = { ...(await openPaperBroker({ db: t.db, plan, windowMs })), ...more };
  const ends: string[] = [];
  const ended: Tell["ended"] = ({ idempotencyKey }, { to, code }) => void ends.push(`${idempotencyKey} ${to} ${code}`);
  const parts = { db: t.db, broker, settings: quick, tell: { ...tellNobody, ended }, onError: () => {} };
  const cancel = cancelOrder({ db: t.db, onAborted: () => {}, onRequested: () => {} });
  return {
    ...t,
    plan,
    /** Of each step that was told of: the order, where it went, and why. */
    ends,
    sender: sendOrders(parts),
    asker: askBroker(parts),
    canceller: cancelOrders(parts),
    cancel: async (n: number) => (await cancel({ caller: "shop", idempotencyKey: `key-${n}` })).result,
    requests: () => t.rows(`select status, result ->> 'why' as why from cancel_requests order by order_row_id`),
    due: () => t.db.query(`update cancel_requests set next_retry_at = now() where next_retry_at > now()`),
  };
}

test("a cancel of what the broker has open is done; of what is filled it comes too late", async () => {
  await using s = await stage();
  await s.accept([1, 2]);
  // The first is an order that waits at its price.
  await s.db.query(
    `update outbox_orders set price = 0.01, order_request_json = '{"time_in_force": "GTC"}' where order_id = 'order-1'`,
  );
  await s.sender.runOnce();
  expect([await s.cancel(1), await s.cancel(2)]).toEqual(["requested", "requested"]);
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([
    { status: "done", why: "it was open" },
    { status: "refused", why: "it is filled" },
  ]);
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "succeeded" }]);
});

test("an order in doubt that turns out not to be with the broker is not sent again once its cancel was asked for", async () => {
  await using s = await stage({ dedupes: false });
  await s.accept([1]);
  s.plan.queue("lost-before");
  await s.sender.runOnce();
  expect(await s.cancel(1)).toBe("requested");
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "requested" }]);
  await s.minutesPass();
  await s.asker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "pending" }]);
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 2, last_error_code: "CANCELLED" }]);
  await s.due();
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([{ status: "aborted", why: "it never reached the broker" }]);
});

test("the canceller itself ends an order that went back to waiting", async () => {
  await using s = await stage({ dedupes: false });
  await s.accept([1]);
  s.plan.queue("lost-before");
  await s.sender.runOnce();
  await s.cancel(1);
  await s.minutesPass();
  await s.asker.runOnce();
  await s.canceller.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "CANCELLED" }]);
  expect(await s.requests()).toEqual([{ status: "aborted", why: "cancelled before it was sent" }]);
  expect(s.ends.filter((end) => end.includes("aborted"))).toEqual(["key-1 aborted CANCELLED"]);
});

test("cancel-only lets cancels through, and a halt does not", async () => {
  await using s = await stage();
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  await s.trade("halt");
  expect(await s.canceller.runOnce()).toMatchObject({ release: 1 });
  await s.trade("cancel-only");
  await s.due();
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "refused" }]);
});

test("a canceller whose request another has taken over says nothing of how it ended", async () => {
  await using s = await stage({
    async cancel() {
      await s.db.query(`update cancel_requests set lease_epoch = lease_epoch + 1`);
      return { kind: "cancelled", why: "yes" };
    },
  });
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  expect(await s.canceller.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.requests()).toEqual([{ status: "sending", why: null }]);
});

test("a cancel to which the broker does not answer is asked for again", async () => {
  let calls = 0;
  const cancel = async () =>
    calls++ === 0 ? ({ kind: "unknown", why: "no answer" } as const) : ({ kind: "cancelled", why: "yes" } as const);
  await using s = await stage({ cancel });
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "requested" }]);
  await s.due();
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([{ status: "done", why: "yes" }]);
});
