import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { faultPlan } from "../brokers/faults.ts";
import type { Broker } from "../brokers/index.ts";
import { openPaperBroker } from "../brokers/paper/index.ts";
import { clientOrderId } from "../order-request.ts";
import { askAboutDoubts, reconcile, startReconciler } from "./reconcile.ts";
import { sendOrders } from "./send-orders.ts";
import { tellNobody } from "./tell.ts";
import { quick, setup, windowMs } from "./testing.ts";

async function stage(more: Partial<Broker> = {}) {
  const t = await setup();
  const plan = faultPlan();
  const paper = await openPaperBroker({ db: t.db, plan, windowMs });
  const errors: unknown[] = [];
  const parts = {
    db: t.db,
    broker: { ...paper, ...more },
    settings: quick,
    tell: tellNobody,
    onError: (error: unknown) => void errors.push(error),
  };
  return { ...t, ...parts, paper, plan, errors, sender: sendOrders(parts) };
}

const idOf = (n: number) => clientOrderId("shop", `key-${n}`);

test("books that agree have no mismatch, and the look is written down", async () => {
  await using s = await stage();
  await s.accept([1, 2, 3]);
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  expect(
    await s.rows(`select adapter, seen, mismatches, last_ok_at >= last_started_at as ok from reconciliations`),
  ).toEqual([{ adapter: "paper", seen: 3n, mismatches: 0n, ok: true }]);
});

test("every order in doubt is asked about, whenever its turn would have been", async () => {
  await using s = await stage();
  await s.accept([1, 2, 3, 4, 5, 6]);
  s.plan.queue("lost-after", "lost-after", "lost-after", "lost-after", "lost-after", "lost-after");
  await s.sender.runOnce();
  await s.sender.runOnce();
  await s.db.query(`update outbox_orders set next_retry_at = now() + interval '1 hour' where status = 'unknown'`);
  await askAboutDoubts(s);
  expect(await reconcile(s)).toEqual([]);
  expect((await s.states()).every(({ status }) => status === "succeeded")).toBe(true);
});

/** So many orders, of which the broker could not tell so far; ten of them came into doubt at one moment each. */
async function doubt(s: Awaited<ReturnType<typeof stage>>, orders: number): Promise<void> {
  await s.accept(Array.from({ length: orders }, (_, n) => n + 1));
  await s.db.query(`update outbox_orders set status = 'sending', lease_until = now(), attempts = 1`);
  await s.db.query(
    `update outbox_orders set status = 'unknown', lease_until = null, last_error_code = 'BROKER_TIMEOUT', last_sent_at = now(),
            in_doubt_since = now() - (1000 - id / 10) * interval '1 microsecond'`,
  );
}

test("a pass asks about each order in doubt once, also when those that it began with are due again before it ends", async () => {
  const asked: string[] = [];
  await using s = await stage({
    async find(id) {
      asked.push(id);
      // As at a broker so slow that more than a minute passes with every few answers.
      await s.db.query(`update outbox_orders set next_retry_at = now() - interval '1 minute' where status = 'unknown'`);
      if (asked.length > 200) throw new Error("it never ends");
      return { kind: "unknown", why: "no answer" };
    },
  });
  await doubt(s, 50);
  await askAboutDoubts(s);
  expect(asked.toSorted()).toEqual(Array.from({ length: 50 }, (_, n) => idOf(n + 1)).toSorted());
  expect(s.errors).toEqual([]);
  await askAboutDoubts(s);
  expect(asked).toHaveLength(100);
});

test("a pass leaves to the next what comes into doubt after it began, and to another what that one asks about", async () => {
  const asked: string[] = [];
  await using s = await stage({
    async find(id) {
      asked.push(id);
      if (asked.length > 20) throw new Error("it never ends");
      await s.db.query(
        `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest,
           adapter, instrument, side, qty, changed_by, expires_at, status, in_doubt_since, last_error_code)
         select 'shop', $1, $1, $1, '{}', 'd', 'paper', 'X', 'BUY', 1, 'shop', now(), 'unknown', clock_timestamp(), 'BROKER_TIMEOUT'`,
        [`new-${asked.length}`],
      );
      return { kind: "unknown", why: "no answer" };
    },
  });
  await doubt(s, 3);
  await s.db.query(`update outbox_orders set lease_until = now() + interval '1 hour' where id = 2`);
  await askAboutDoubts(s);
  expect(asked.toSorted()).toEqual([idOf(1), idOf(3)].toSorted());
});

test("a broker that answers no question about orders in doubt does not hold up the comparison of the books", async () => {
  const asking = Promise.withResolvers<void>();
  const find = async () => {
    await asking.promise;
    return { kind: "unknown", why: "no answer" } as const;
  };
  await using s = await stage({ find });
  await doubt(s, 1);
  await using running = new AsyncDisposableStack();
  let compared = 0;
  running.use(startReconciler({ ...s, everyMs: 10, onMismatches: () => void compared++ }));
  running.defer(asking.resolve);
  await until("the books are compared twice", () => compared >= 2);
});

test("whatever the two books do not agree on is a mismatch, and nothing is mended", async () => {
  await using s = await stage();
  await s.accept([1, 2, 3, 4, 5]);
  await s.sender.runOnce();
  await s.sender.runOnce();
  const ours = (n: number, change: string) =>
    s.db.query(`update outbox_orders set ${change} where client_order_id = $1`, [idOf(n)]);
  await s.db.query(`delete from paper_broker.orders where client_order_id = $1`, [idOf(1)]);
  await ours(2, "qty = 7");
  await ours(3, "broker_order_id = 'another'");
  await s.db.query(
    `alter table outbox_orders disable trigger user; update outbox_orders set status = 'aborted', last_error_code = 'CANCELLED' where client_order_id = '${idOf(4)}'; alter table outbox_orders enable trigger user`,
  );
  const stranger = {
    instrument: "USDJPY",
    side: "SELL",
    qty: "1",
    price: null,
    timeInForce: "IOC",
    maxSlippageBps: null,
  } as const;
  const options = () => ({ stampedAt: s.paper.clock(), signal: AbortSignal.timeout(60_000) });
  await s.paper.send({ ...stranger, clientOrderId: "tdk-nobody" }, options());
  await s.paper.send({ ...stranger, clientOrderId: "somebody-else" }, options());
  const told: unknown[] = [];
  const found = await reconcile({ ...s, onMismatches: (mismatches) => void told.push(...mismatches) });
  const short = found.map(({ clientOrderId: id, kind }) => `${id} ${kind}`).toSorted();
  expect(short).toEqual(
    [
      `${idOf(1)} missing`,
      `${idOf(2)} different`,
      `${idOf(3)} different`,
      `${idOf(4)} taken-though-ended`,
      "tdk-nobody not-ours",
    ].toSorted(),
  );
  expect(told).toEqual(found);
  const [row] = await s.rows(`select mismatches, jsonb_array_length(details) as kept from reconciliations`);
  expect(row).toEqual({ mismatches: 5n, kept: 5 });
});

test("an order that is under way, or taken while the look goes on, is no mismatch", async () => {
  await using s = await stage();
  await s.accept([1, 2]);
  s.plan.queue("lost-after");
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  expect((await s.states()).map(({ status }) => status).toSorted()).toEqual(["succeeded", "unknown"]);
});

test("an order that the broker takes after its list was read is not missed in it", async () => {
  await using s = await stage({
    async *list(since, signal) {
      yield* s.paper.list(since, signal);
      await s.sender.runOnce();
    },
  });
  await s.accept([1]);
  expect(await reconcile(s)).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "succeeded" }]);
});

test("an order that the broker's clock has an hour further back than ours is not missed", async () => {
  await using s = await stage();
  await s.accept([1]);
  await s.sender.runOnce();
  await s.db.query(`update paper_broker.orders set taken_at = now() - interval '24 hours 30 minutes'`);
  expect(await reconcile(s)).toEqual([]);
  await s.db.query(`update paper_broker.orders set taken_at = now() - interval '26 hours'`);
  expect(await reconcile(s)).toMatchObject([{ kind: "missing" }]);
});

test("a look that fails is told, and the time of the last good one stays", async () => {
  // biome-ignore lint/correctness/useYield: it fails before there is anything to list.
  async function* list(): AsyncIterable<never> {
    throw new Error("the broker is away");
  }
  await using s = await stage();
  await reconcile(s);
  const [good] = await s.rows(`select last_ok_at from reconciliations`);
  const failing = { ...s, broker: { ...s.broker, list } };
  await expect(reconcile(failing)).rejects.toThrow("the broker is away");
  const [row] = await s.rows(`select last_ok_at, last_error from reconciliations`);
  expect(row).toEqual({ ...good, last_error: "Error: the broker is away" });
  await using _ = startReconciler({ ...failing, everyMs: 10 });
  await until("it has failed twice more", () => s.errors.length >= 2);
});

test("orders of another broker are not missed, nor those that were in doubt for longer than the list goes back", async () => {
  await using s = await stage();
  await s.accept([1, 2, 3]);
  await s.sender.runOnce();
  await s.db.query(`delete from paper_broker.orders where client_order_id <> $1`, [idOf(3)]);
  const ours = (n: number, change: string) =>
    s.db.query(`update outbox_orders set ${change} where client_order_id = $1`, [idOf(n)]);
  await ours(1, "adapter = 'http'");
  await ours(2, "first_sent_at = now() - interval '3 days'");
  expect(await reconcile(s)).toEqual([]);
  await ours(3, "adapter = 'http'");
  expect(await reconcile(s)).toMatchObject([{ clientOrderId: idOf(3), detail: "we have it as sent to http" }]);
});

test("an order that a list shows on two pages is one; another under the same name is told", async () => {
  const list: { twice?: string } = {};
  await using s = await stage({
    async *list(since, signal) {
      for await (const each of s.paper.list(since, signal)) {
        yield each;
        yield { ...each, brokerOrderId: list.twice ?? each.brokerOrderId };
      }
    },
  });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(await reconcile(s)).toEqual([]);
  list.twice = "paper-9";
  expect(await reconcile(s)).toMatchObject([
    { kind: "different", detail: "it was taken twice; the second is paper-9" },
  ]);
});
