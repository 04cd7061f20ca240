import { hash } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Fault } from "../brokers/faults.ts";
import { cancelOrder } from "../commands/cancel-order.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { checkAllUnresolved, reconcile } from "./reconcile.ts";
import { startSender } from "./start-sender.ts";
import { createSenderHarness, fastSettings } from "./testing/harness.ts";

test("an order is sent; order, ledger, history and an event have the broker's result", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 1, settled: 1 });
  expect(await s.states()).toEqual([{ status: "succeeded", attempts: 1, last_error_code: null }]);
  expect(await s.steps()).toBe("pending>sending>succeeded");
  expect(await s.events()).toEqual(["OrderAccepted", "OrderSucceeded", "OrderFilled"]);
  const [order] = await s.rows(
    `select broker_order_id, broker_result, evidence::text, evidence_digest from outbox_orders`,
  );
  expect(order).toMatchObject({ broker_order_id: "paper-1", broker_result: { status: "filled", filled_qty: "1.50" } });
  const [entry] = await s.rows(`select status, answer, result_digest from idempo_ledger`);
  expect(entry).toMatchObject({ status: "succeeded", result_digest: `sha256:${hash("sha256", entry.answer, "hex")}` });
  expect(JSON.parse(entry.answer)).toMatchObject({ status: "succeeded", result: { status: "filled" } });
});

test("the evidence digest is that of the broker's raw bytes", async () => {
  const raw = '{ "client_order_id" : "as it came", "spaces": [ ] }';
  const result = { brokerOrderId: "b1", filledQty: "1", price: null, status: "open", takenAt: "2026-01-01T00:00:00Z" };
  const send = async () => ({ kind: "taken", result, evidence: raw }) as never;
  await using s = await createSenderHarness({ broker: { send } });
  await s.accept([1]);
  await s.sender.runOnce();
  const [order] = await s.rows(`select evidence_digest from outbox_orders`);
  expect(order).toEqual({ evidence_digest: `sha256:${hash("sha256", raw, "hex")}` });
});

test("a rejection by the broker aborts the order", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  s.fault("reject");
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "BROKER_REJECTED" }]);
  expect(await s.rows(`select status from idempo_ledger`)).toEqual([{ status: "failed" }]);
  expect(await s.events()).toEqual(["OrderAccepted", "OrderFailed"]);
});

test("an order is sent with the max_slippage_bps that it was accepted with", async () => {
  await using s = await createSenderHarness();
  await s.accept([1, 2]);
  const limits = `jsonb_build_object('risk_constraints', jsonb_build_object('max_slippage_bps', case id when 1 then 4 else 5 end))`;
  await s.db.query(`update outbox_orders set order_request_json = order_request_json || ${limits}`);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([
    { status: "aborted", last_error_code: "BROKER_REJECTED" },
    { status: "succeeded" },
  ]);
});

test("a failed attempt is retried after its backoff, and the sixth aborts the order", async () => {
  await using s = await createSenderHarness({ settings: { backoffMs: [60_000, 1, 1, 1, 1, 1] } });
  await s.accept([1]);
  s.fault(...Array<Fault>(6).fill("busy"));
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "failed", attempts: 1, last_error_code: "BROKER_DOWN" }]);
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  // Not pending: when trading resumes, every pending order becomes due at once.
  expect(await s.states()).toMatchObject([{ status: "failed" }]);
  expect(await s.rows(`select next_retry_at - updated_at > interval '50 s' as waits from outbox_orders`)).toEqual([
    { waits: true },
  ]);
  await s.makeDue();
  await until("six attempts are made", async () => {
    await s.sender.runOnce();
    return (await s.states())[0]?.status === "aborted";
  });
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 6, last_error_code: "BROKER_DOWN" }]);
  expect(s.sends).toHaveLength(6);
  expect(await s.steps()).toBe(`pending>${Array(5).fill("sending>failed>pending").join(">")}>sending>aborted`);
});

test("an order is not sent before the broker's clock is known", async () => {
  const unknown = ["the broker's clock could not be measured: no reply"];
  await using s = await createSenderHarness({ broker: { measureClock: async () => unknown.pop() } });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "failed", attempts: 1, last_error_code: "BROKER_DOWN" }]);
  expect(await s.rows(`select first_sent_at, in_doubt_since from outbox_orders`)).toEqual([
    { first_sent_at: null, in_doubt_since: null },
  ]);
  expect(s.sends).toEqual([]);
  await s.makeDue();
  await until("it is sent", async () => {
    await s.sender.runOnce();
    return (await s.states())[0]?.status === "succeeded";
  });
  expect(s.sends).toHaveLength(1);
});

test("a longer Retry-After of the broker replaces the backoff", async () => {
  const refusal = {
    kind: "not-taken",
    code: "BROKER_RATE_LIMITED",
    reason: "too many",
    retryAfterMs: 3_600_000,
  } as const;
  await using s = await createSenderHarness({ broker: { send: async () => refusal } });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(
    await s.rows(
      `select status, last_error_code, next_retry_at > now() + interval '50 minutes' as waits from outbox_orders`,
    ),
  ).toEqual([{ status: "failed", last_error_code: "BROKER_RATE_LIMITED", waits: true }]);
});

test("an order that the broker already has is looked up", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  s.fault("already");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

test("an order whose slot is far away is released without an attempt", async () => {
  await using s = await createSenderHarness({ settings: { perSecond: 1 } });
  await s.db.query(`insert into broker_turns values ('paper', clock_timestamp() + interval '1 hour')`);
  await s.accept([1]);
  expect(await s.sender.runOnce()).toMatchObject({ release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
});

test("a sender does not start with a lease shorter than twice the timeout", async () => {
  await using s = await createSenderHarness();
  const short = { leaseMs: 10_000, pollMs: 20 };
  const senders = [
    { settings: { ...fastSettings, ...short } },
    { timings: { checker: short } },
    { timings: { canceller: short } },
  ];
  for (const options of senders) expect(() => startSender({ ...s, ...options })).toThrow("twice the broker's timeout");
});

test("orders of another broker are neither sent nor checked", async () => {
  const checked: string[] = [];
  const find = async (id: string) => {
    checked.push(id);
    return { kind: "not-taken" } as const;
  };
  await using s = await createSenderHarness({ broker: { name: "http", find } });
  await s.accept([1, 2, 3]);
  const whereOrder = (n: number) => `where order_id = 'order-${n}'`;
  const crashed = `update outbox_orders set status = 'sending', attempts = 1, lease_epoch = 1, lease_until = now(),
                       in_doubt_since = now(), last_sent_at = now() - interval '1 hour'`;
  for (const n of [2, 3]) await s.db.query(`${crashed} ${whereOrder(n)}`);
  await s.db.query(
    `update outbox_orders set status = 'unknown', lease_until = null, last_error_code = 'BROKER_TIMEOUT' ${whereOrder(3)}`,
  );
  const cancel = cancelOrder({ db: s.db, onAborted: () => {}, onRequested: () => {} });
  await cancel({ caller: "shop", idempotencyKey: "key-3" });
  const before = await s.rows(`select * from outbox_orders order by id`);
  for (const each of [s.sender, s.checker, cancelOrders(s)]) expect(await each.runOnce()).toMatchObject({ claimed: 0 });
  await checkAllUnresolved(s);
  await reconcile(s);
  expect(await s.rows(`select * from outbox_orders order by id`)).toEqual(before);
  expect({ checked, sends: s.sends }).toEqual({ checked: [], sends: [] });
});
