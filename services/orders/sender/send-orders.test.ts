import { hash } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { type Fault, faultPlan } from "../brokers/faults.ts";
import type { Broker } from "../brokers/index.ts";
import { openPaperBroker } from "../brokers/paper/index.ts";
import { cancelOrder } from "../commands/cancel-order.ts";
import { resolveOrder } from "../commands/resolve-order.ts";
import { clientOrderId } from "../order-request.ts";
import { askBroker } from "./ask-broker.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { startSender } from "./index.ts";
import { askAboutDoubts, reconcile } from "./reconcile.ts";
import { type SenderSettings, sendOrders } from "./send-orders.ts";
import { takeTurn } from "./store.ts";
import { type Tell, tellNobody } from "./tell.ts";
import { quick, setup, windowMs } from "./testing.ts";

/** A database, a broker on paper that does as told, and the workers, which run when they are asked to. */
async function stage({ broker: more = {}, settings = {}, tell = {} }: Staged = {}) {
  const t = await setup();
  const plan = faultPlan();
  const paper = await openPaperBroker({ db: t.db, plan, slowMs: 200, windowMs });
  const sends: string[] = [];
  const broker: Broker = {
    ...paper,
    send(order, options) {
      sends.push(order.clientOrderId);
      return paper.send(order, options);
    },
    ...more,
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const parts = { db: t.db, broker, settings: { ...quick, ...settings }, tell: { ...tellNobody, ...tell }, onError };
  const fault = (...wanted: readonly Fault[]) => plan.queue(...wanted);
  return { ...t, ...parts, paper, sends, errors, fault, sender: sendOrders(parts), asker: askBroker(parts) };
}

interface Staged {
  readonly broker?: Partial<Broker>;
  readonly settings?: Partial<SenderSettings>;
  readonly tell?: Partial<Tell>;
}

test("an order is sent, and what the broker made of it is in the order, its ledger, its history and an event", async () => {
  await using s = await stage();
  await s.accept([1]);
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 1, settled: 1 });
  expect(await s.states()).toEqual([{ status: "succeeded", attempts: 1, last_error_code: null }]);
  expect(await s.steps()).toBe("pending>sending>succeeded");
  expect(await s.events()).toEqual(["OrderAccepted", "OrderSucceeded"]);
  const [order] = await s.rows(
    `select broker_order_id, broker_result, evidence::text, evidence_digest from outbox_orders`,
  );
  expect(order).toMatchObject({ broker_order_id: "paper-1", broker_result: { status: "filled", filled_qty: "1.50" } });
  const [entry] = await s.rows(`select status, answer, result_digest from idempo_ledger`);
  expect(entry).toMatchObject({ status: "succeeded", result_digest: `sha256:${hash("sha256", entry.answer, "hex")}` });
  expect(JSON.parse(entry.answer)).toMatchObject({ status: "succeeded", result: { status: "filled" } });
});

test("the digest of the evidence is that of the broker's own bytes", async () => {
  const raw = '{ "client_order_id" : "as it came", "spaces": [ ] }';
  const result = { brokerOrderId: "b1", filledQty: "1", price: null, status: "open", takenAt: "2026-01-01T00:00:00Z" };
  const send = async () => ({ kind: "taken", result, evidence: raw }) as never;
  await using s = await stage({ broker: { send } });
  await s.accept([1]);
  await s.sender.runOnce();
  const [order] = await s.rows(`select evidence_digest from outbox_orders`);
  expect(order).toEqual({ evidence_digest: `sha256:${hash("sha256", raw, "hex")}` });
});

test("a refusal for good ends the order at once", async () => {
  await using s = await stage();
  await s.accept([1]);
  s.fault("reject");
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "BROKER_REJECTED" }]);
  expect(await s.rows(`select status from idempo_ledger`)).toEqual([{ status: "failed" }]);
  expect(await s.events()).toEqual(["OrderAccepted", "OrderFailed"]);
});

test("an order is held to the max_slippage_bps that it was accepted with", async () => {
  await using s = await stage();
  await s.accept([1, 2]);
  const limits = `jsonb_build_object('risk_constraints', jsonb_build_object('max_slippage_bps', case id when 1 then 4 else 5 end))`;
  await s.db.query(`update outbox_orders set order_request_json = order_request_json || ${limits}`);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([
    { status: "aborted", last_error_code: "BROKER_REJECTED" },
    { status: "succeeded" },
  ]);
});

test("a failure that is known waits as failed, is pending again after its wait, and the sixth ends the order", async () => {
  await using s = await stage({ settings: { backoff: { waitsMs: [60_000, 1, 1, 1, 1, 1] } } });
  await s.accept([1]);
  s.fault(...Array<Fault>(6).fill("busy"));
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "failed", attempts: 1, last_error_code: "BROKER_DOWN" }]);
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  // Not pending yet: when trading resumes, every pending order is due at once.
  expect(await s.states()).toMatchObject([{ status: "failed" }]);
  expect(await s.rows(`select next_retry_at - updated_at > interval '50 s' as waits from outbox_orders`)).toEqual([
    { waits: true },
  ]);
  await s.makeDue();
  await until("it was tried six times", async () => {
    await s.sender.runOnce();
    return (await s.states())[0]?.status === "aborted";
  });
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 6, last_error_code: "BROKER_DOWN" }]);
  expect(s.sends).toHaveLength(6);
  expect(await s.steps()).toBe(`pending>${Array(5).fill("sending>failed>pending").join(">")}>sending>aborted`);
});

test("a broker that says when to come back is left alone until then", async () => {
  const refusal = { kind: "not-taken", code: "BROKER_RATE_LIMITED", why: "too many", retryAfterMs: 3_600_000 } as const;
  await using s = await stage({ broker: { send: async () => refusal } });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(
    await s.rows(
      `select status, last_error_code, next_retry_at > now() + interval '50 minutes' as waits from outbox_orders`,
    ),
  ).toEqual([{ status: "failed", last_error_code: "BROKER_RATE_LIMITED", waits: true }]);
});

test.each(["lost-after", "error-after"] as const)(
  "%s: unknown, then found to be taken, and never sent twice",
  async (fault) => {
    await using s = await stage();
    await s.accept([1]);
    s.fault(fault);
    await s.sender.runOnce();
    expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 1 }]);
    expect(
      await s.rows(
        `select status, convert_from(answer, 'utf8')::json ->> 'unresolved' as unresolved from idempo_ledger`,
      ),
    ).toEqual([{ status: "accepted", unresolved: "true" }]);
    expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
    await s.makeDue();
    await s.asker.runOnce();
    expect(await s.states()).toEqual([{ status: "succeeded", attempts: 1, last_error_code: null }]);
    expect(await s.events()).toEqual(["OrderAccepted", "OrderUnresolved", "OrderSucceeded"]);
    expect(s.sends).toHaveLength(1);
  },
);

test("a lost request is asked about for as long as it may arrive, and sent again only when it never can", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  for (let asked = 0; asked < 8; asked++) {
    await s.makeDue();
    expect(await s.asker.runOnce()).toMatchObject({ settled: 1 });
    expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  }
  expect(await s.steps()).toBe("pending>sending>unknown");
  const [{ ms }] = await s.rows(
    `select extract(epoch from next_retry_at - clock_timestamp()) * 1000 as ms from outbox_orders`,
  );
  expect(Number(ms)).toBeGreaterThan(30_000);
  expect(await s.events()).toEqual(["OrderAccepted", "OrderUnresolved"]);
  await s.minutesPass();
  await s.asker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "pending" }]);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(s.sends).toHaveLength(2);
});

test("a lost request to a broker that dedupes is sent again after its wait, and asked about first", async () => {
  await using s = await stage();
  await s.accept([1]);
  s.fault("lost-before", "lost-after");
  await s.sender.runOnce();
  await s.makeDue();
  await s.asker.runOnce();
  expect(await s.steps()).toBe("pending>sending>unknown>sending");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
  await s.makeDue();
  await s.asker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(s.sends).toHaveLength(2);
});

test("what a broker refuses is no proof while a request before it may still be taken", async () => {
  await using s = await stage();
  await s.accept([1]);
  s.fault("lost-before", "busy");
  await s.sender.runOnce();
  await s.makeDue();
  await s.asker.runOnce();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
});

test("in doubt and out of attempts: given up only when it is proven that the broker never took it", async () => {
  await using s = await stage({ settings: { backoff: { waitsMs: [1] } } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  await s.asker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown" }]);
  await s.minutesPass();
  await s.asker.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "BROKER_TIMEOUT" }]);
});

test("a broker that says nothing at all leaves an order in doubt for ever, for a person to see", async () => {
  const find = async () => ({ kind: "unknown", why: "no idea" }) as const;
  await using s = await stage({ broker: { find } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  for (let asked = 0; asked < 20; asked++) {
    await s.minutesPass();
    await s.asker.runOnce();
  }
  expect(await s.states()).toEqual([{ status: "unknown", attempts: 1, last_error_code: "BROKER_TIMEOUT" }]);
  expect(await s.rows(`select count(*)::int as steps from order_status_history`)).toEqual([{ steps: 3 }]);
});

test("a broker that has the order already is asked what became of it", async () => {
  await using s = await stage();
  await s.accept([1]);
  s.fault("already");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

/** As a process that dies at this point: its lease lapses, and nobody says anything. */
async function dies(s: Awaited<ReturnType<typeof stage>>, { departed }: { readonly departed: boolean }) {
  const at = departed ? "clock_timestamp()" : "null";
  await s.db.query(
    `update outbox_orders set status = 'sending', attempts = attempts + 1, lease_epoch = lease_epoch + 1,
            lease_until = now(), locked_by = 'died', in_doubt_since = ${at}, first_sent_at = ${at}, last_sent_at = ${at}`,
  );
}

test("an order whose sender died before anything left is sent by the next, without asking", async () => {
  let asked = 0;
  const find = async () => {
    asked++;
    return { kind: "unknown", why: "nobody should ask" } as const;
  };
  await using s = await stage({ broker: { find } });
  await s.accept([1]);
  await dies(s, { departed: false });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(asked).toBe(0);
});

test("an order whose sender died after it may have left is asked about first: taken, or not known", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  await dies(s, { departed: true });
  await s.sender.runOnce();
  expect(s.sends).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
  await s.minutesPass();
  await s.asker.runOnce();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 3 }]);
  expect(s.sends).toHaveLength(1);
});

test("senders that die every time end the order, once it is proven that the broker has not got it", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  for (let n = 0; n < 6; n++) await dies(s, { departed: true });
  await s.db.query(`update outbox_orders set last_sent_at = now() - interval '1 hour'`);
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 7, last_error_code: "INTERNAL_ERROR" }]);
  expect(s.sends).toEqual([]);
});

test("the stamp of a clock that was wrong is forgotten once its request is known not to have been taken", async () => {
  await using s = await stage();
  await s.accept([1]);
  await s.db.query(`update outbox_orders set first_sent_at = now(), last_sent_at = now() + interval '1 hour'`);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(await s.rows(`select status, last_sent_at < now() + interval '1 minute' as ours from outbox_orders`)).toEqual([
    { status: "unknown", ours: true },
  ]);
});

test("while a request is in doubt, the stamp of a later one by a clock that has gone back does not replace its own", async () => {
  await using s = await stage();
  await s.accept([1]);
  await dies(s, { departed: true });
  await s.db.query(`update outbox_orders set last_sent_at = now() + interval '5 minutes'`);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(1);
  expect(await s.rows(`select status, last_sent_at > now() + interval '4 minutes' as kept from outbox_orders`)).toEqual(
    [{ status: "unknown", kept: true }],
  );
});

test("nobody can say that an order was not taken while the broker may still take its last request", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  const resolving = { id: "1", reason: "not in their books", by: "aki" } as const;
  const refused = resolveOrder(s.db, { ...resolving, as: "not-taken" });
  await expect(refused).rejects.toMatchObject({ code: "order-window-open", status: 409 });
  const { retryAfterSeconds } = (await refused.catch((error) => error)) as { retryAfterSeconds: number };
  expect(retryAfterSeconds).toBeGreaterThan(1);
  expect(retryAfterSeconds).toBeLessThanOrEqual(s.broker.windowMs / 1_000);
  expect(await s.rows(`select status from outbox_orders union all select "as" from order_resolutions`)).toEqual([
    { status: "unknown" },
  ]);
  await s.db.query(`update outbox_orders set window_ends_at = clock_timestamp()`);
  expect(await resolveOrder(s.db, { ...resolving, as: "not-taken" })).toMatchObject({ status: "pending" });
});

test("that an order was taken can be said at once, and of a broker that promises no window both can", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  const unpromising = sendOrders({ ...s, broker: { ...s.broker, windowMs: 0 } });
  const said = { reason: "their books", by: "aki" };
  await s.accept([1]);
  s.fault("lost-after", "lost-before");
  await s.sender.runOnce();
  expect(await resolveOrder(s.db, { ...said, id: "1", as: "taken" })).toMatchObject({ status: "succeeded" });
  await s.accept([2]);
  await unpromising.runOnce();
  expect(await resolveOrder(s.db, { ...said, id: "2", as: "not-taken" })).toMatchObject({ status: "pending" });
});

test("the window of a request in doubt is not cut short by one that was sent after it", async () => {
  await using s = await stage();
  await s.accept([1]);
  await dies(s, { departed: true });
  await s.db.query(`update outbox_orders set window_ends_at = now() + interval '1 hour'`);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(1);
  const [{ kept }] = await s.rows(`select window_ends_at > now() + interval '50 minutes' as kept from outbox_orders`);
  expect(kept).toBe(true);
});

test("an order that a person says was not taken is sent, also when its attempts were used up", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  for (let n = 0; n < 6; n++) await dies(s, { departed: true });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 7 }]);
  await resolveOrder(s.db, { id: "1", as: "not-taken", reason: "not in their books", by: "aki" });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
  expect(s.sends).toHaveLength(1);
});

test("while all trading is halted, what a dead sender may have sent is asked about, and not sent again", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1, 2]);
  const order = {
    instrument: "USDJPY",
    side: "BUY",
    qty: "1.50",
    price: null,
    timeInForce: "IOC",
    maxSlippageBps: null,
  } as const;
  const about = { stampedAt: s.paper.clock(), signal: AbortSignal.timeout(60_000) };
  await s.paper.send({ ...order, clientOrderId: clientOrderId("shop", "key-1") }, about);
  await dies(s, { departed: true });
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 2 });
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "unknown", attempts: 1 }]);
  await s.minutesPass();
  await s.asker.runOnce();
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  expect(await s.states()).toMatchObject([{ status: "succeeded" }, { status: "pending" }]);
  expect(s.sends).toEqual([]);
});

test("while all trading is halted, an order that never left its dead sender is not claimed, and is sent afterwards", async () => {
  await using s = await stage();
  await s.accept([1]);
  await dies(s, { departed: false });
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  expect(await s.states()).toMatchObject([{ status: "sending", attempts: 1 }]);
  await s.trade("active");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
});

test("while all trading is halted nothing is claimed; halted in between, an order goes back without an attempt", async () => {
  await using s = await stage();
  await s.accept([1]);
  await s.trade("halt");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  await s.trade("cancel-only");
  expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  await s.trade("active");
  const round = await sentAfter(s, () => s.trade("halt"));
  expect(round).toMatchObject({ claimed: 1, release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
  await s.trade("active");
  await s.makeDue();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

/** A round whose order is claimed, and has its turn to be sent only when something else has happened. */
async function sentAfter(s: Awaited<ReturnType<typeof stage>>, happen: () => Promise<unknown>) {
  const patient = { lockTimeoutMs: 120_000, statementTimeoutMs: 120_000, idleInTransactionTimeoutMs: 120_000 };
  const db = s.open(patient);
  const holder = await db.connect();
  try {
    await holder.query(`begin; lock table broker_turns`);
    const round = sendOrders({ ...s, db, settings: { ...s.settings, perSecond: 10 } }).runOnce();
    await until("it is claimed", async () => (await s.states())[0]?.status === "sending");
    await happen();
    await holder.query("commit");
    return await round;
  } finally {
    holder.release(true);
  }
}

test("an instrument that is halted waits without a trail, and holds nobody up", async () => {
  await using s = await stage();
  await s.accept([1], "EURUSD");
  await s.accept([2], "USDJPY");
  await s.trade("halt", "EURUSD");
  for (let round = 0; round < 3; round++) {
    await s.sender.runOnce();
    await s.makeDue();
  }
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }, { status: "succeeded" }]);
  expect(await s.steps()).toBe("pending");
});

test("an order whose instrument is halted after the claim is not sent; the halt of another instrument does not stop it", async () => {
  await using s = await stage();
  await s.accept([1], "EURUSD");
  expect(await sentAfter(s, () => s.trade("halt", "EURUSD"))).toMatchObject({ claimed: 1, release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
  await s.trade("active", "EURUSD");
  await s.makeDue();
  await sentAfter(s, () => s.trade("halt", "USDJPY"));
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
});

test("a change of the trading state is heard at once", async () => {
  await using s = await stage({ settings: { pollMs: 60_000 } });
  await using wakeups = openWakeups({ url: s.url });
  await wakeups.listening;
  await s.accept([1], "EURUSD");
  await s.trade("halt", "EURUSD");
  const topics = { orders: "orders", cancels: "cancels", trading: "trading" };
  await using _ = startSender({ ...s, wakeups, topics });
  await until("it was put off", async () => {
    wakeups.signal("orders");
    return (await s.rows(`select from outbox_orders where next_retry_at > clock_timestamp()`)).length === 1;
  });
  // For so long that nothing but the signal can bring it back.
  await s.db.query(`update outbox_orders set next_retry_at = now() + interval '1 hour'`);
  await s.trade("active", "EURUSD");
  wakeups.signal("trading");
  await until("it is sent", async () => (await s.states())[0]?.status === "succeeded");
});

test("a sender whose order another has taken over sends nothing and writes nothing", async () => {
  await using s = await stage();
  await s.accept([1]);
  let before: unknown[] = [];
  const round = await sentAfter(s, async () => {
    await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
    before = await s.rows(`select * from outbox_orders`);
  });
  expect(round).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select * from outbox_orders`)).toEqual(before);
  expect(s.sends).toEqual([]);
});

test("a sender whose lease has lapsed sends nothing, also when nobody has taken the order over yet", async () => {
  await using s = await stage();
  await s.accept([1]);
  const round = await sentAfter(s, () => s.db.query(`update outbox_orders set lease_until = clock_timestamp()`));
  expect(round).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(s.sends).toEqual([]);
});

test("the lease begins anew with the request, however much of it had passed", async () => {
  let left: unknown;
  await using s = await stage({
    broker: {
      async send(order, options) {
        [left] = await s.rows(
          `select lease_until > clock_timestamp() + interval '1 minute' as whole from outbox_orders`,
        );
        return s.paper.send(order, options);
      },
    },
  });
  await s.accept([1]);
  await sentAfter(s, () => s.db.query(`update outbox_orders set lease_until = clock_timestamp() + interval '50 s'`));
  expect(left).toEqual({ whole: true });
});

test("since when an order is in doubt, and when it was first sent, stay as they are while it is asked about and sent again", async () => {
  await using s = await stage();
  await s.accept([1]);
  s.fault("lost-before", "lost-before");
  await s.sender.runOnce();
  const since = `select in_doubt_since, first_sent_at from outbox_orders`;
  await s.db.query(
    `update outbox_orders set in_doubt_since = in_doubt_since - interval '1 hour', first_sent_at = first_sent_at - interval '1 hour'`,
  );
  const before = await s.rows(since);
  await s.makeDue();
  await s.asker.runOnce();
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(2);
  expect(await s.rows(since)).toEqual(before);
  const find = async () => ({ kind: "unknown", why: "no idea" }) as const;
  await s.makeDue();
  await askBroker({ ...s, broker: { ...s.broker, find } }).runOnce();
  expect(await s.rows(`select status, asked from outbox_orders`)).toEqual([{ status: "unknown", asked: 3 }]);
  expect(await s.rows(since)).toEqual(before);
});

test("a broker that dedupes is not sent an order again before its wait is over", async () => {
  await using s = await stage({ settings: { backoff: { waitsMs: [3_600_000, 1] } } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  await s.asker.runOnce();
  expect(await s.steps()).toBe("pending>sending>unknown");
});

test("an order that somebody asks about is asked about by nobody else, and one who lost it changes nothing", async () => {
  const taken = { kind: "not-yet" } as const;
  await using s = await stage({
    broker: {
      async find() {
        expect(await s.asker.runOnce()).toMatchObject({ claimed: 0 });
        await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
        return taken;
      },
    },
  });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  expect(await s.asker.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select status, locked_by, lease_until is not null as held from outbox_orders`)).toEqual([
    { status: "unknown", locked_by: "another", held: true },
  ]);
});

test("a question that fails for a reason of ours frees no lease but its own", async () => {
  await using s = await stage({
    broker: {
      async find() {
        await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
        throw new Error("a defect");
      },
    },
  });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  expect(await s.asker.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select locked_by, lease_until is not null as held from outbox_orders`)).toEqual([
    { locked_by: "another", held: true },
  ]);
});

test("whatever goes wrong with an order in doubt leaves it in doubt", async () => {
  const find = async () => {
    throw new Error("a defect");
  };
  await using s = await stage({ broker: { find } });
  await s.accept([1]);
  await dies(s, { departed: true });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", last_error_code: "INTERNAL_ERROR" }]);
});

test("halted, or cancelled, before it is sent again: what may be at the broker from before stays in doubt", async () => {
  await using s = await stage();
  await s.accept([1]);
  await dies(s, { departed: true });
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

test("a person's word waits for whoever has the order in hand, and then counts by what that one has left", async () => {
  await using s = await stage({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.db.query(`update outbox_orders set window_ends_at = now()`);
  const sender = await s.db.connect();
  await sender.query(`begin; update outbox_orders set window_ends_at = now() + interval '1 hour'`);
  const resolved = resolveOrder(s.db, { id: "1", as: "not-taken", reason: "not in their books", by: "aki" });
  resolved.catch(() => {});
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await until("it waits", async () => (await s.rows(waits)).length === 1);
  await sender.query("commit");
  sender.release();
  await expect(resolved).rejects.toMatchObject({ code: "order-window-open" });
});

test("a sender that stands still between the last look and the first byte sends nothing", async () => {
  const departed = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
  // By then the lease has less left than a request may take, and still so much that nobody else has the order.
  await using s = await stage({ settings: { timeoutMs: quick.leaseMs - 500 }, tell: { departed } });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(s.sends).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 1 }]);
});

test("a stop in the middle of a request leaves the order in doubt, never free", async () => {
  await using s = await stage({ settings: { timeoutMs: 100 }, broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("slow");
  const running = startSender(s);
  await until("it is sent", () => s.sends.length === 1);
  await running[Symbol.asyncDispose]();
  expect(["unknown", "succeeded"]).toContain((await s.states())[0]?.status);
});

test("the database itself frees nothing that is in doubt, whoever asks", async () => {
  await using s = await stage();
  await s.accept([1]);
  await dies(s, { departed: true });
  for (const status of ["pending", "failed", "aborted", "succeeded"]) {
    const free = s.db.query(
      `update outbox_orders set status = $1, lease_until = null, last_error_code = 'INTERNAL_ERROR',
              done_at = case when $1 in ('aborted', 'succeeded') then now() end`,
      [status],
    );
    await expect(free).rejects.toThrow("order_in_doubt_is_not_free");
  }
});

test("turns are handed out at the rate, over all senders, and none that is too far away", async () => {
  await using s = await stage();
  const turn = () => takeTurn(s.db, { adapter: "paper", perSecond: 2, waitMaxMs: 60_000 });
  const [{ at }] = await s.rows(`select clock_timestamp()::text as at`);
  const turns = await Promise.all(Array.from({ length: 20 }, turn));
  expect(turns).not.toContain(undefined);
  // Twenty at two a second, however long it took to ask for them.
  const rate = await s.rows(`select next_at >= $1::timestamptz + interval '10 s' as kept from broker_turns`, at);
  expect(rate).toEqual([{ kept: true }]);
  expect(await takeTurn(s.db, { adapter: "another", perSecond: 2, waitMaxMs: 1 })).toBe(0);
  await s.db.query(`update broker_turns set next_at = clock_timestamp() + interval '1 hour'`);
  expect(await turn()).toBeUndefined();
});

test("an order that has to wait long for its turn goes back without an attempt", async () => {
  await using s = await stage({ settings: { perSecond: 1 } });
  await s.db.query(`insert into broker_turns values ('paper', clock_timestamp() + interval '1 hour')`);
  await s.accept([1]);
  expect(await s.sender.runOnce()).toMatchObject({ release: 1 });
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 0 }]);
  expect(s.sends).toEqual([]);
});

test("a sender cannot be started with a lease that its requests may outlast", async () => {
  await using s = await stage();
  expect(() => startSender({ ...s, settings: { ...quick, leaseMs: 10_000 } })).toThrow("twice as long");
});

test("an order of another broker is neither sent nor asked about, however long it waits: that one may have it", async () => {
  const asked: string[] = [];
  const find = async (id: string) => {
    asked.push(id);
    return { kind: "never" } as const;
  };
  await using s = await stage({ broker: { name: "http", find } });
  await s.accept([1, 2, 3]);
  const its = (n: number) => `where order_id = 'order-${n}'`;
  const died = `update outbox_orders set status = 'sending', attempts = 1, lease_epoch = 1, lease_until = now(),
                       in_doubt_since = now(), last_sent_at = now() - interval '1 hour'`;
  for (const n of [2, 3]) await s.db.query(`${died} ${its(n)}`);
  await s.db.query(
    `update outbox_orders set status = 'unknown', lease_until = null, last_error_code = 'BROKER_TIMEOUT' ${its(3)}`,
  );
  const cancel = cancelOrder({ db: s.db, onAborted: () => {}, onRequested: () => {} });
  await cancel({ caller: "shop", idempotencyKey: "key-3" });
  const before = await s.rows(`select * from outbox_orders order by id`);
  for (const each of [s.sender, s.asker, cancelOrders(s)]) expect(await each.runOnce()).toMatchObject({ claimed: 0 });
  await askAboutDoubts(s);
  await reconcile(s);
  expect(await s.rows(`select * from outbox_orders order by id`)).toEqual(before);
  expect({ asked, sends: s.sends }).toEqual({ asked: [], sends: [] });
});
