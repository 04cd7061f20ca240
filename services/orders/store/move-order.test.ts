import { decodeEvent, encodeEvent } from "@todoke/contracts";
import type { Db } from "@todoke/kernel/db";
import { expect, test } from "vitest";
import { orderStatuses } from "../order.ts";
import { bodyOf, setup } from "../testing.ts";
import { type Move, moveOrder } from "./move-order.ts";

const claimed = `update outbox_orders set status = 'sending', attempts = attempts + 1, lease_epoch = lease_epoch + 1,
  locked_by = 'sender 1', locked_at = now(), lease_until = now() + interval '1 minute' where id = $1`;

/** One order, and ways to look at it. */
async function withOrder() {
  const t = await setup();
  const { order, get } = await t.process();
  await order(bodyOf("k1"));
  const { id } = (await get("/do/order/k1")).json();
  const row = async () => (await t.db.query(`select * from outbox_orders where id = $1`, [id])).rows[0];
  const events = async () =>
    (await t.db.query(`select event_type, version::int, payload from outbox_events order by position`)).rows;
  const ledger = async () =>
    (await t.db.query(`select status, convert_from(answer, 'utf8')::json as answer from idempo_ledger`)).rows[0];
  return { ...t, order, get, id, row, events, ledger, claim: () => t.db.query(claimed, [id]) };
}

const held = { epoch: "1", from: ["sending"] } as const;

test("an order that succeeds: order, ledger, history and event say so together", async () => {
  await using t = await withOrder();
  await t.claim();
  const evidence = '{"status":"filled","n":1}';
  const result = { status: "filled", filled_qty: "0.5" };
  const move = { ...held, id: t.id, to: "succeeded", brokerOrderId: "b-1", result, evidence } as const;
  expect(await moveOrder(t.db, move)).toBe(true);
  expect(await t.row()).toMatchObject({
    status: "succeeded",
    version: 3,
    broker_order_id: "b-1",
    evidence: { status: "filled", n: 1 },
    evidence_digest: "sha256:6b6dd38ac476c6c08946939072b6ddef1c73b3f948e30e51e566f1dd80cba1b9",
    locked_by: null,
    last_error_code: null,
    done_at: expect.any(Date),
  });
  expect(await t.ledger()).toMatchObject({ status: "succeeded", answer: { status: "succeeded", result } });
  const history = (await t.get(`/v1/orders/${t.id}/history`)).json().history;
  expect(history).toMatchObject([
    { place: 1, from: null, to: "pending", attempt: 0, by: "desk" },
    { place: 2, from: "pending", to: "sending", attempt: 1, by: "sender 1" },
    { place: 3, from: "sending", to: "succeeded", attempt: 1, by: "sender 1", code: null },
  ]);
  const events = await t.events();
  expect(events.map((event) => `${event.event_type} ${event.version}`)).toEqual([
    "OrderAccepted 1",
    "OrderSucceeded 3",
  ]);
  const told = decodeEvent("OrderSucceeded", encodeEvent("OrderSucceeded", events[1].payload));
  expect(told).toMatchObject({ caller: "desk", orderId: "o-k1", brokerOrderId: "b-1", version: 3n });
});

test("an order in doubt stays accepted for its caller, who is told once however often the broker was asked in vain", async () => {
  await using t = await withOrder();
  await t.claim();
  const doubt = { id: t.id, to: "unknown", code: "BROKER_TIMEOUT", why: "no answer in 10 s", inMs: 60_000 } as const;
  expect(await moveOrder(t.db, { ...held, ...doubt })).toBe(true);
  expect(await t.ledger()).toMatchObject({
    status: "accepted",
    answer: { status: "accepted", unresolved: true, reason_code: "BROKER_TIMEOUT" },
  });
  await t.db.query(`update outbox_orders set lease_epoch = 2, lease_until = now() + interval '1 minute'`);
  const again = { ...doubt, epoch: "2", from: ["unknown"] } as const;
  expect(await moveOrder(t.db, again)).toBe(true);
  expect(await t.row()).toMatchObject({ status: "unknown", asked: 2, version: 3 });
  expect((await t.events()).map((event) => event.event_type)).toEqual(["OrderAccepted", "OrderUnresolved"]);
  const { payload } = (await t.events())[1];
  expect(decodeEvent("OrderUnresolved", encodeEvent("OrderUnresolved", payload)).reasonCode).toBe("BROKER_TIMEOUT");
});

test("a failure waits, and a second one that is the last ends the order for good", async () => {
  await using t = await withOrder();
  await t.claim();
  await moveOrder(t.db, { ...held, id: t.id, to: "failed", code: "BROKER_DOWN", why: "refused", inMs: 60_000 });
  const { rows } = await t.db.query(`select next_retry_at > now() + interval '30 seconds' as later from outbox_orders`);
  expect(rows).toEqual([{ later: true }]);
  expect((await t.ledger()).status).toBe("accepted");
  await t.db.query(`update outbox_orders set status = 'pending'`);
  await t.claim();
  await moveOrder(t.db, { ...held, epoch: "2", id: t.id, to: "aborted", code: "BROKER_DOWN", why: "refused" });
  expect(await t.ledger()).toMatchObject({
    status: "failed",
    answer: { status: "failed", reason_code: "BROKER_DOWN" },
  });
  expect((await t.events()).map((event) => event.event_type)).toEqual(["OrderAccepted", "OrderFailed"]);
  const history = (await t.get(`/v1/orders/${t.id}/history`)).json().history;
  expect(history.map((step: { to: string; by: string }) => `${step.to} ${step.by}`)).toEqual([
    "pending desk",
    "sending sender 1",
    "failed sender 1",
    "pending backoff",
    "sending sender 1",
    "aborted sender 1",
  ]);
});

test("who has lost the lease, or never had it, writes nothing", async () => {
  await using t = await withOrder();
  await t.claim();
  const before = [await t.row(), await t.ledger(), await t.events()];
  const wrong: Partial<Move>[] = [
    { epoch: "0" },
    { epoch: "2" },
    { epoch: null },
    { from: ["pending"] },
    { id: "999999" },
  ];
  for (const more of wrong)
    expect(await moveOrder(t.db, { ...held, id: t.id, to: "aborted", code: "CANCELLED", ...more })).toBe(false);
  expect([await t.row(), await t.ledger(), await t.events()]).toEqual(before);
  // And what may be out cannot wait as if it were not, whoever says so.
  const free = t.db.query(`update outbox_orders set status = 'pending', lease_until = null, in_doubt_since = now()`);
  await expect(free).rejects.toThrow("order_in_doubt_is_not_free");
});

/** A row of that status as the checks of the table want it. */
const put = (db: Db, id: string, status: string) =>
  db.query(
    `update outbox_orders set status = $2, last_error_code = 'INTERNAL_ERROR', in_doubt_since = case when $2 = 'unknown' then now() end,
            lease_until = case when $2 = 'sending' then now() end,
            done_at = case when $2 in ('succeeded', 'aborted') then now() end where id = $1`,
    [id, status],
  );

test("the database itself takes the steps of the diagram and no others, whoever asks", async () => {
  await using t = await withOrder();
  const allowed = [
    "pending>sending pending>aborted",
    "sending>pending sending>succeeded sending>failed sending>aborted sending>unknown",
    "failed>pending failed>aborted",
    "unknown>sending unknown>succeeded unknown>aborted unknown>pending",
  ].flatMap((steps) => steps.split(" "));
  const ways: Record<string, string[]> = {
    pending: [],
    sending: ["sending"],
    succeeded: ["sending", "succeeded"],
    failed: ["sending", "failed"],
    aborted: ["sending", "aborted"],
    unknown: ["sending", "unknown"],
  };
  for (const from of orderStatuses) {
    for (const to of orderStatuses.filter((status) => status !== from)) {
      const key = `${from}-${to}`;
      await t.order(bodyOf(key));
      const { id } = (await t.get(`/do/order/${key}`)).json();
      for (const status of ways[from] ?? []) await put(t.db, id, status);
      const taken = put(t.db, id, to).then(
        () => true,
        (error) => {
          expect(error.message).toBe(`an order cannot go from ${from} to ${to}`);
          return false;
        },
      );
      expect([key, await taken]).toEqual([key, allowed.includes(`${from}>${to}`)]);
    }
  }
});

test("history cannot be changed, nor emptied, nor removed without its order", async () => {
  await using t = await withOrder();
  const refused = "order_status_history is append-only";
  await expect(t.db.query(`update order_status_history set by = 'me'`)).rejects.toThrow(refused);
  await expect(t.db.query(`delete from order_status_history`)).rejects.toThrow(refused);
  await expect(t.db.query(`truncate order_status_history`)).rejects.toThrow(refused);
  await t.db.query(`delete from outbox_orders`);
  expect((await t.rows()).history).toBe(0);
});

test.each([
  ["text", "<html>", { text: "<html>" }],
  ["a NUL", '{"a":"\\u0000"}', { text: '{"a":"\\u0000"}' }],
  ["half a character", '{"a":"\\ud800"}', { text: '{"a":"\\ud800"}' }],
  ["too much", `"${"x".repeat(20_000)}"`, { text: `"${"x".repeat(8_191)}` }],
])("an answer of the broker that is %s is kept as evidence all the same", async (_, evidence, kept) => {
  await using t = await withOrder();
  await t.claim();
  const why = "\0 \ud800";
  expect(await moveOrder(t.db, { ...held, id: t.id, to: "aborted", code: "BROKER_REJECTED", why, evidence })).toBe(
    true,
  );
  expect(await t.row()).toMatchObject({ evidence: kept, last_error_msg: "\uFFFD \uFFFD" });
});
