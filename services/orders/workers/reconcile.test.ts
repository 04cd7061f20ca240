import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Broker } from "../brokers/index.ts";
import { clientOrderId } from "../order/order-request.ts";
import { checkAllUnresolved, reconcile, startReconciler } from "./reconcile.ts";
import { createSenderHarness, type SenderHarness } from "./testing/harness.ts";

const createHarness = (broker: Partial<Broker> = {}) => createSenderHarness({ broker });

const idOf = (n: number) => clientOrderId("shop", `key-${n}`);

test("a comparison without mismatches is recorded", async () => {
  await using s = await createHarness();
  await s.accept([1, 2, 3]);
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  expect(
    await s.rows(`select adapter, seen, mismatches, last_ok_at >= last_started_at as ok from reconciliations`),
  ).toEqual([{ adapter: "paper", seen: 3n, mismatches: 0n, ok: true }]);
});

test("every unresolved order is checked, whether due or not", async () => {
  await using s = await createHarness();
  await s.accept([1, 2, 3, 4, 5, 6]);
  s.fault("lost-after", "lost-after", "lost-after", "lost-after", "lost-after", "lost-after");
  await s.sender.runOnce();
  await s.sender.runOnce();
  await s.db.query(`update outbox_orders set next_retry_at = now() + interval '1 hour' where status = 'unknown'`);
  await checkAllUnresolved(s);
  expect(await reconcile(s)).toEqual([]);
  expect((await s.states()).every(({ status }) => status === "succeeded")).toBe(true);
});

/** Unresolved orders, of which each ten became unresolved at the same microsecond. */
async function makeUnresolved(s: SenderHarness, orders: number): Promise<void> {
  await s.accept(Array.from({ length: orders }, (_, n) => n + 1));
  await s.db.query(`update outbox_orders set status = 'sending', lease_until = now(), attempts = 1`);
  await s.db.query(
    `update outbox_orders set status = 'unknown', lease_until = null, last_error_code = 'BROKER_TIMEOUT', last_sent_at = now(),
            in_doubt_since = now() - (1000 - id / 10) * interval '1 microsecond'`,
  );
}

test("a pass checks each unresolved order once, even if the first are due again before it ends", async () => {
  const checked: string[] = [];
  const endless = new AbortController(); // Stops a pass that would not end.
  await using s = await createHarness({
    async find(id) {
      checked.push(id);
      // A broker so slow that orders are due again before the pass ends.
      await s.db.query(`update outbox_orders set next_retry_at = now() - interval '1 minute' where status = 'unknown'`);
      if (checked.length > 200) endless.abort();
      return { kind: "unknown", reason: "no reply" };
    },
  });
  await makeUnresolved(s, 50);
  await checkAllUnresolved(s, endless.signal);
  expect(checked.length, "the pass checks an order again and again").toBeLessThanOrEqual(50);
  expect(checked.toSorted()).toEqual(Array.from({ length: 50 }, (_, n) => idOf(n + 1)).toSorted());
  expect(s.errors).toEqual([]);
  await checkAllUnresolved(s);
  expect(checked).toHaveLength(100);
});

test("a pass skips orders that become unresolved after its start or are claimed by another worker", async () => {
  const checked: string[] = [];
  const endless = new AbortController(); // Stops a pass that would not end.
  await using s = await createHarness({
    async find(id) {
      checked.push(id);
      if (checked.length > 20) endless.abort();
      await s.db.query(
        `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest,
           adapter, instrument, side, qty, changed_by, expires_at, status, in_doubt_since, last_error_code)
         select 'shop', $1, $1, $1, '{}', 'd', 'paper', 'X', 'BUY', 1, 'shop', now(), 'unknown', clock_timestamp(), 'BROKER_TIMEOUT'`,
        [`new-${checked.length}`],
      );
      return { kind: "unknown", reason: "no reply" };
    },
  });
  await makeUnresolved(s, 3);
  await s.db.query(`update outbox_orders set lease_until = now() + interval '1 hour' where id = 2`);
  await checkAllUnresolved(s, endless.signal);
  expect(checked.toSorted()).toEqual([idOf(1), idOf(3)].toSorted());
});

test("a broker that does not reply to checks does not delay the comparison", async () => {
  const checking = Promise.withResolvers<void>();
  const find = async () => {
    await checking.promise;
    return { kind: "unknown", reason: "no reply" } as const;
  };
  await using s = await createHarness({ find });
  await makeUnresolved(s, 1);
  await using running = new AsyncDisposableStack();
  let compared = 0;
  running.use(startReconciler({ ...s, intervalMs: 10, onMismatches: () => void compared++ }));
  running.defer(checking.resolve);
  await until("two comparisons are made", () => compared >= 2);
});

test("every difference to the broker is a mismatch, and nothing is changed", async () => {
  await using s = await createHarness();
  await s.accept([1, 2, 3, 4, 5]);
  await s.sender.runOnce();
  await s.sender.runOnce();
  const ours = (n: number, change: string) =>
    s.db.query(`update outbox_orders set ${change} where client_order_id = $1`, [idOf(n)]);
  await s.db.query(`delete from paper_broker.orders where client_order_id = $1`, [idOf(1)]);
  await ours(2, "qty = 7, filled_qty = 7");
  await ours(3, "broker_order_id = 'another'");
  await s.db.query(
    `alter table outbox_orders disable trigger user; update outbox_orders set status = 'aborted', execution = null, last_error_code = 'CANCELLED' where client_order_id = '${idOf(4)}'; alter table outbox_orders enable trigger user`,
  );
  const stranger = {
    instrument: "USDJPY",
    side: "SELL",
    qty: "1",
    price: null,
    timeInForce: "IOC",
    maxSlippageBps: null,
  } as const;
  const options = () => ({ timestamp: s.paper.clock(), signal: AbortSignal.timeout(60_000) });
  await s.paper.send({ ...stranger, clientOrderId: "tdk-unknown" }, options());
  await s.paper.send({ ...stranger, clientOrderId: "another-client" }, options());
  const reported: unknown[] = [];
  const found = await reconcile({ ...s, onMismatches: (mismatches) => void reported.push(...mismatches) });
  const short = found.map(({ clientOrderId: id, kind }) => `${id} ${kind}`).toSorted();
  expect(short).toEqual(
    [
      `${idOf(1)} missing`,
      `${idOf(2)} different`,
      `${idOf(3)} different`,
      `${idOf(4)} taken-though-ended`,
      "tdk-unknown not-ours",
    ].toSorted(),
  );
  expect(reported).toEqual(found);
  const [row] = await s.rows(`select mismatches, jsonb_array_length(details) as details from reconciliations`);
  expect(row).toEqual({ mismatches: 5n, details: 5 });
});

test("an unresolved order is not a mismatch", async () => {
  await using s = await createHarness();
  await s.accept([1, 2]);
  s.fault("lost-after");
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  expect((await s.states()).map(({ status }) => status).toSorted()).toEqual(["succeeded", "unknown"]);
});

test("an order that the broker takes after its list was read is not missing", async () => {
  await using s = await createHarness({
    async *list(since, signal) {
      yield* s.paper.list(since, signal);
      await s.sender.runOnce();
    },
  });
  await s.accept([1]);
  expect(await reconcile(s)).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "succeeded" }]);
});

test("an order is not missing if the broker's clock is up to an hour behind", async () => {
  await using s = await createHarness();
  await s.accept([1]);
  await s.sender.runOnce();
  await s.db.query(`update paper_broker.orders set taken_at = now() - interval '24 hours 30 minutes'`);
  expect(await reconcile(s)).toEqual([]);
  await s.db.query(`update paper_broker.orders set taken_at = now() - interval '26 hours'`);
  expect(await reconcile(s)).toMatchObject([{ kind: "missing" }]);
});

test("a failed comparison is reported and keeps the time of the last good one", async () => {
  // biome-ignore lint/correctness/useYield: it fails before there is anything to list.
  async function* list(): AsyncIterable<never> {
    throw new Error("the broker is down");
  }
  await using s = await createHarness();
  await reconcile(s);
  const [good] = await s.rows(`select last_ok_at from reconciliations`);
  const failing = { ...s, broker: { ...s.broker, list } };
  await expect(reconcile(failing)).rejects.toThrow("the broker is down");
  const [row] = await s.rows(`select last_ok_at, last_error from reconciliations`);
  expect(row).toEqual({ ...good, last_error: "Error: the broker is down" });
  await using _ = startReconciler({ ...failing, intervalMs: 10 });
  await until("it has failed twice more", () => s.errors.length >= 2);
});

test("orders of another broker, and orders sent before the list begins, are not missing", async () => {
  await using s = await createHarness();
  await s.accept([1, 2, 3]);
  await s.sender.runOnce();
  await s.db.query(`delete from paper_broker.orders where client_order_id <> $1`, [idOf(3)]);
  const ours = (n: number, change: string) =>
    s.db.query(`update outbox_orders set ${change} where client_order_id = $1`, [idOf(n)]);
  await ours(1, "adapter = 'http'");
  await ours(2, "first_sent_at = now() - interval '3 days'");
  expect(await reconcile(s)).toEqual([]);
  await ours(3, "adapter = 'http'");
  expect(await reconcile(s)).toMatchObject([{ clientOrderId: idOf(3), detail: "we sent it to http" }]);
});

test("an order on two pages counts once; another under the same ID is a mismatch", async () => {
  const list: { second?: string } = {};
  await using s = await createHarness({
    async *list(since, signal) {
      for await (const each of s.paper.list(since, signal)) {
        yield each;
        yield { ...each, brokerOrderId: list.second ?? each.brokerOrderId };
      }
    },
  });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  list.second = "paper-9";
  expect(await reconcile(s)).toMatchObject([
    { kind: "different", detail: "the broker took it twice; the second is paper-9" },
  ]);
});
