import { expect, test } from "vitest";
import type { Broker } from "../brokers/index.ts";
import { cancelOrder } from "../commands/cancel-order.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { createSenderHarness } from "./testing/harness.ts";

async function createCancelHarness(broker: Partial<Broker> = {}) {
  const transitions: string[] = [];
  const s = await createSenderHarness({
    broker,
    telemetry: {
      transitioned: ({ idempotencyKey }, { to, code }) => void transitions.push(`${idempotencyKey} ${to} ${code}`),
    },
  });
  const cancel = cancelOrder({ db: s.db, onAborted: () => {}, onRequested: () => {} });
  return {
    ...s,
    /** Key, state and code of every recorded transition. */
    transitions,
    canceller: cancelOrders(s),
    cancel: async (n: number) => (await cancel({ caller: "shop", idempotencyKey: `key-${n}` })).result,
    requests: () => s.rows(`select status, result ->> 'why' as reason from cancel_requests order by order_row_id`),
    makeCancelsDue: () => s.db.query(`update cancel_requests set next_retry_at = now() where next_retry_at > now()`),
  };
}

test("a cancel of an open order is done, and of a filled order refused", async () => {
  await using s = await createCancelHarness();
  await s.accept([1, 2]);
  // The first is a limit order that stays open.
  await s.db.query(
    `update outbox_orders set price = 0.01, order_request_json = '{"time_in_force": "GTC"}' where order_id = 'order-1'`,
  );
  await s.sender.runOnce();
  expect([await s.cancel(1), await s.cancel(2)]).toEqual(["requested", "requested"]);
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([
    { status: "done", reason: "it was open" },
    { status: "refused", reason: "it is filled" },
  ]);
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "succeeded" }]);
});

test("an unresolved order with a cancel request is not sent again if the broker does not have it", async () => {
  await using s = await createCancelHarness({ dedupes: false });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(await s.cancel(1)).toBe("requested");
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "requested" }]);
  const lastErrors = () => s.rows(`select last_error from cancel_requests`);
  expect(await lastErrors()).toEqual([{ last_error: expect.any(String) }]);
  await s.passWindow();
  await s.checker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "pending" }]);
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 2, last_error_code: "CANCELLED" }]);
  await s.makeCancelsDue();
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([{ status: "aborted", reason: "it never reached the broker" }]);
  expect(await lastErrors()).toEqual([{ last_error: null }]);
});

test("a cancel request stops its own order only, and not after it is refused", async () => {
  await using s = await createCancelHarness({ dedupes: false });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.cancel(1);
  await s.accept([2]);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown" }, { status: "succeeded" }]);
  await s.db.query(`update cancel_requests set status = 'refused', done_at = now(), result = '{"why": "a test"}'`);
  await s.passWindow();
  await s.checker.runOnce();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "succeeded" }]);
});

test("the canceller aborts an order that is pending again", async () => {
  await using s = await createCancelHarness({ dedupes: false });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.cancel(1);
  await s.passWindow();
  await s.checker.runOnce();
  await s.canceller.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "CANCELLED" }]);
  expect(await s.requests()).toEqual([{ status: "aborted", reason: "cancelled before it was sent" }]);
  expect(s.transitions.filter((each) => each.includes("aborted"))).toEqual(["key-1 aborted CANCELLED"]);
});

test("cancel-only allows cancels, a halt does not", async () => {
  await using s = await createCancelHarness();
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  await s.trade("halt");
  expect(await s.canceller.runOnce()).toMatchObject({ release: 1 });
  await s.trade("cancel-only");
  await s.makeCancelsDue();
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "refused" }]);
});

test("a canceller that lost its lease does not settle the request", async () => {
  await using s = await createCancelHarness({
    async cancel() {
      await s.db.query(`update cancel_requests set lease_epoch = lease_epoch + 1`);
      return { kind: "cancelled", reason: "yes" };
    },
  });
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  expect(await s.canceller.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.requests()).toEqual([{ status: "sending", reason: null }]);
});

test("a cancel without a reply of the broker is retried", async () => {
  let calls = 0;
  const cancel = async () =>
    calls++ === 0
      ? ({ kind: "unknown", reason: "no reply" } as const)
      : ({ kind: "cancelled", reason: "yes" } as const);
  await using s = await createCancelHarness({ cancel });
  await s.accept([1]);
  await s.sender.runOnce();
  await s.cancel(1);
  await s.canceller.runOnce();
  expect(await s.requests()).toMatchObject([{ status: "requested" }]);
  await s.makeCancelsDue();
  await s.canceller.runOnce();
  expect(await s.requests()).toEqual([{ status: "done", reason: "yes" }]);
});
