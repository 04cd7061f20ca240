import { deleteFinished } from "@todoke/kernel/retention";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { resolveOrder } from "../commands/resolve-order.ts";
import { endedLedger, endedOrders } from "../store/retention.ts";
import { transitionOrder } from "../store/transition-order.ts";
import { bodyOf, createHarness } from "../testing.ts";
import { mayLiftAnyHalt, visibleTo } from "./access.ts";

type Setup = Awaited<ReturnType<typeof createHarness>>;

/** Claims it as a sender, under epoch 1. */
const claim = async ({ db }: Setup, key: string): Promise<string> => {
  const { rows } = await db.query(
    `update outbox_orders set status = 'sending', attempts = attempts + 1, lease_epoch = 1, locked_by = 'sender 1',
            locked_at = now(), lease_until = now() + interval '1 minute', in_doubt_since = now()
      where idempotency_key = $1 returning id::text`,
    [key],
  );
  return rows[0].id;
};

/** Makes it unresolved. */
async function inDoubt(t: Setup, key: string): Promise<string> {
  const id = await claim(t, key);
  await transitionOrder(t.db, {
    id,
    epoch: "1",
    from: ["sending"],
    to: "unknown",
    code: "BROKER_TIMEOUT",
    reason: "no answer",
  });
  return id;
}

test("orders are listed newest first, in pages, and filtered by status, instrument, order_id and time", async () => {
  await using t = await createHarness();
  const { order, get } = await t.process();
  for (let i = 1; i <= 5; i++) await order(bodyOf(`k${i}`));
  await order(bodyOf("eth", { instrument: "ETH-USD", qty: 1 }));
  await t.db.query(
    `update outbox_orders set created_at = '2026-01-01T00:00:00Z'::timestamptz + id * interval '1 hour'`,
  );
  const keys = async (query: string) =>
    (await get(`/v1/orders${query}`)).json().orders.map((each: { idempotency_key: string }) => each.idempotency_key);
  expect(await keys("")).toEqual(["eth", "k5", "k4", "k3", "k2", "k1"]);
  const pages: string[][] = [];
  for (let cursor = ""; ; ) {
    const page = (await get(`/v1/orders?limit=4${cursor}`)).json();
    pages.push(page.orders.map((each: { idempotency_key: string }) => each.idempotency_key));
    if (page.next_cursor === undefined) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  expect(pages).toEqual([
    ["eth", "k5", "k4", "k3"],
    ["k2", "k1"],
  ]);
  expect(await keys("?instrument=ETH-USD")).toEqual(["eth"]);
  expect(await keys("?order_id=o-k2")).toEqual(["k2"]);
  expect(await keys("?from=2026-01-01T02:00:00Z&to=2026-01-01T04:00:00Z")).toEqual(["k3", "k2"]);
  await claim(t, "k4");
  expect(await keys("?status=sending")).toEqual(["k4"]);
  expect(await keys("?status=pending&limit=2")).toEqual(["eth", "k5"]);
  const refused = ["?status=lost", "?from=now", "?limit=0", "?cursor=abc", "?colour=red"];
  for (const query of refused) expect((await get(`/v1/orders${query}`)).statusCode).toBe(400);
  for (const path of ["/v1/orders/999", "/v1/orders/999/history"]) {
    const answer = await get(path);
    expect([answer.statusCode, answer.json().code]).toEqual([404, "order-not-found"]);
  }
});

test("a key sees its own orders; with orders:read-all, those of all callers", async () => {
  await using t = await createHarness();
  const { order, get } = await t.process();
  for (const key of ["d1", "d2"]) await order(bodyOf(key));
  await order(bodyOf("b1"), { holder: "bot" });
  for (const key of ["d1", "d2", "b1"]) await inDoubt(t, key);
  const keys = async (url: string, holder: string) =>
    (await get(url, holder)).json().orders.map((each: { idempotency_key: string }) => each.idempotency_key);
  for (const url of ["/v1/orders", "/v1/orders?status=unknown", "/v1/orders/unresolved"]) {
    expect((await keys(url, "desk")).toSorted()).toEqual(["d1", "d2"]);
    expect(await keys(url, "bot")).toEqual(["b1"]);
    expect(await keys(url, "eyes")).toEqual([]);
    expect((await keys(url, "auditor")).toSorted()).toEqual(["b1", "d1", "d2"]);
  }
  // A next page is not announced for another caller's order.
  for (const url of ["/v1/orders?limit=2", "/v1/orders/unresolved?limit=2"])
    expect((await get(url, "desk")).json()).not.toHaveProperty("next_cursor");
  const { id } = (await get("/do/order/b1", "bot")).json();
  for (const path of [`/v1/orders/${id}`, `/v1/orders/${id}/history`]) {
    expect((await get(path, "bot")).statusCode).toBe(200);
    expect((await get(path, "auditor")).statusCode).toBe(200);
    for (const holder of ["desk", "eyes"]) {
      const answer = await get(path, holder);
      expect([answer.statusCode, answer.json().detail]).toEqual([404, `There is no order ${id}.`]);
    }
  }
});

test("admins see the orders of all callers and may lift any halt", () => {
  const admin = { kind: "user", name: "user:1", userId: "1", roles: ["ADMIN"] } as const;
  expect(visibleTo({ caller: "user:1", principal: admin })).toBeUndefined();
  expect(mayLiftAnyHalt({ caller: "user:1", principal: admin })).toBe(true);
  expect(visibleTo({ caller: "x", principal: undefined })).toBe("x");
  expect(mayLiftAnyHalt({ caller: "x", principal: undefined })).toBe(false);
});

test("cancelling an unsent order aborts it; repeating the cancel returns the same response", async () => {
  await using t = await createHarness();
  const { order, cancel } = await t.process();
  await order(bodyOf("k1"));
  const answer = await cancel("k1");
  expect(answer.statusCode).toBe(200);
  expect(answer.json()).toMatchObject({ status: "aborted", reason_code: "CANCELLED", reason: "cancelled by desk" });
  const again = await cancel("k1");
  expect([again.statusCode, again.json()]).toEqual([200, answer.json()]);
  expect((await order(bodyOf("k1"))).json()).toMatchObject({ status: "failed", reason_code: "CANCELLED" });
  const { rows } = await t.db.query(`select event_type from outbox_events order by position`);
  expect(rows.map((row) => row.event_type)).toEqual(["OrderAccepted", "OrderFailed"]);
  await expect(claim(t, "k1")).rejects.toThrow("an order cannot go from aborted to sending");
});

test("two concurrent cancels of an unsent order abort it once", async () => {
  await using t = await createHarness();
  const { order, cancel } = await t.process();
  await order(bodyOf("k1"));
  const holder = await t.db.connect();
  await holder.query("begin; select from outbox_orders for update");
  const cancels = [cancel("k1"), cancel("k1")];
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await until("both wait for the order", async () => (await t.db.query(waits)).rowCount === 2);
  await holder.query("commit");
  holder.release();
  for (const answer of await Promise.all(cancels))
    expect([answer.statusCode, answer.json().status]).toEqual([200, "aborted"]);
  expect((await t.db.query(`select from cancel_requests`)).rowCount).toBe(0);
  expect((await t.db.query(`select from outbox_events where event_type = 'OrderFailed'`)).rowCount).toBe(1);
});

test("a failed order can be cancelled; an aborted one cannot", async () => {
  await using t = await createHarness();
  const { order, cancel } = await t.process();
  for (const [key, to] of [
    ["failed", "failed"],
    ["gone", "aborted"],
  ] as const) {
    await order(bodyOf(key));
    const id = await claim(t, key);
    await transitionOrder(t.db, { id, epoch: "1", from: ["sending"], to, code: "BROKER_DOWN", reason: "refused" });
  }
  expect((await cancel("failed")).json()).toMatchObject({ status: "aborted", reason_code: "CANCELLED" });
  const late = await cancel("gone");
  expect([late.statusCode, late.json().code]).toEqual([409, "order-ended"]);
});

test("cancels of an order that may have been sent make one request to the broker", async () => {
  await using t = await createHarness();
  const { order, cancel, get } = await t.process();
  for (const key of ["sending", "unknown", "succeeded"]) await order(bodyOf(key));
  await claim(t, "sending");
  await inDoubt(t, "unknown");
  const id = await claim(t, "succeeded");
  await transitionOrder(t.db, { id, epoch: "1", from: ["sending"], to: "succeeded" });
  for (const key of ["sending", "unknown", "succeeded"]) {
    for (const answer of [await cancel(key), await cancel(key)])
      expect([key, answer.statusCode, answer.json().cancel]).toEqual([key, 202, "requested"]);
    expect((await get(`/do/order/${key}`)).json().cancel).toBe("requested");
  }
  const { rows } = await t.db.query(`select status, requested_by from cancel_requests`);
  expect(rows).toEqual(Array(3).fill({ status: "requested", requested_by: "desk" }));
});

test("an unresolved order stays listed until an operator resolves it", async () => {
  await using t = await createHarness();
  const { order, get } = await t.process();
  for (const key of ["older", "newer"]) await order(bodyOf(key));
  const [older, newer] = [await inDoubt(t, "older"), await inDoubt(t, "newer")];
  const page = (await get("/v1/orders/unresolved?limit=1")).json();
  expect(page.orders).toMatchObject([{ id: older, status: "unknown", in_doubt_since: expect.any(String) }]);
  const next = (await get(`/v1/orders/unresolved?limit=1&cursor=${page.next_cursor}`)).json();
  expect(next.orders).toMatchObject([{ id: newer }]);
  const [by, reason] = ["aki", "asked the broker's desk by phone"];
  const taken = await resolveOrder(t.db, { id: older, as: "taken", reason, by, brokerOrderId: "b-7" });
  expect(taken).toMatchObject({ status: "succeeded", broker_order_id: "b-7", in_doubt_since: null });
  const again = await resolveOrder(t.db, { id: newer, as: "not-taken", reason, by });
  expect(again).toMatchObject({ status: "pending", attempts: 0, in_doubt_since: null });
  expect((await get("/v1/orders/unresolved")).json().orders).toEqual([]);
  expect((await order(bodyOf("older"))).json()).toMatchObject({ status: "succeeded", broker_order_id: "b-7" });
  expect((await order(bodyOf("newer"))).json()).not.toHaveProperty("unresolved");
  const { rows } = await t.db.query(
    `select order_row_id::text as id, "as", reason, by from order_resolutions order by 1`,
  );
  expect(rows).toEqual([
    { id: older, as: "taken", reason, by },
    { id: newer, as: "not-taken", reason, by },
  ]);
  const { history } = (await get(`/v1/orders/${older}/history`)).json();
  expect(history.at(-1)).toMatchObject({ from: "unknown", to: "succeeded", by: "aki" });
  for (const id of [older, newer])
    await expect(resolveOrder(t.db, { id, as: "taken", reason, by })).rejects.toMatchObject({
      code: "order-not-unresolved",
    });
  await expect(resolveOrder(t.db, { id: "999", as: "taken", reason, by })).rejects.toMatchObject({ status: 404 });
  expect((await t.db.query(`select from order_resolutions`)).rowCount).toBe(2);
});

test("an order that is being checked cannot be resolved", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  await order(bodyOf("k1"));
  const id = await inDoubt(t, "k1");
  await t.db.query(`update outbox_orders set lease_epoch = 2, lease_until = now() + interval '1 minute'`);
  const resolving = { id, as: "taken", reason: "r", by: "aki" } as const;
  await expect(resolveOrder(t.db, resolving)).rejects.toMatchObject({
    code: "order-in-hand",
    message: `The broker is being asked about order ${id}. Retry in a moment.`,
    retryAfterSeconds: 5,
  });
  await t.db.query(`update outbox_orders set lease_until = now() - interval '1 second'`);
  expect((await resolveOrder(t.db, resolving)).status).toBe("succeeded");
  await expect(resolveOrder(t.db, resolving)).rejects.toMatchObject({ code: "order-not-unresolved" });
});

test("retention deletes ended orders after their expiry, the ledger first, and no others", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  for (const key of ["ended", "pending", "unknown", "open"]) await order(bodyOf(key));
  await inDoubt(t, "unknown");
  const taken = { epoch: "1", from: ["sending"], to: "succeeded" } as const;
  await transitionOrder(t.db, { ...taken, id: await claim(t, "ended"), execution: "expired" });
  // Open at the broker: it may still be filled.
  await transitionOrder(t.db, { ...taken, id: await claim(t, "open") });
  const past = await order(bodyOf("ended"));
  const clean = async () => [await deleteFinished(t.db, endedOrders), await deleteFinished(t.db, endedLedger)];
  expect(await clean()).toEqual([0, 0]);
  await t.db.query(`update idempo_ledger set expires_at = now() - interval '1 day'`);
  expect(await clean()).toEqual([0, 2]);
  expect((await order(bodyOf("ended"))).body).toBe(past.body);
  await t.db.query(`update outbox_orders set expires_at = now() - interval '1 day'`);
  expect(await clean()).toEqual([1, 0]);
  expect(await t.rows()).toEqual({ orders: 3, ledger: 2, history: 7, events: 7 });
  expect((await t.db.query(`select from outbox_orders where execution = 'open'`)).rowCount).toBe(1);
});

test("an order that was unresolved for days is kept as long after its end as any other", async () => {
  await using t = await createHarness();
  const { order } = await t.process();
  await order(bodyOf("late"));
  const id = await inDoubt(t, "late");
  // A year passes.
  await t.db.query(
    `update outbox_orders set created_at = created_at - interval '1 year', expires_at = expires_at - interval '1 year'`,
  );
  await t.db.query(
    `update idempo_ledger set first_seen_at = first_seen_at - interval '1 year', expires_at = expires_at - interval '1 year'`,
  );
  await resolveOrder(t.db, { id, as: "taken", reason: "their books", by: "aki" });
  expect([await deleteFinished(t.db, endedOrders), await deleteFinished(t.db, endedLedger)]).toEqual([0, 0]);
  expect((await order(bodyOf("late"))).statusCode).toBe(200);
  const { rows } = await t.db.query(
    `select round(extract(epoch from o.expires_at - o.done_at) / 86400)::int as days,
            round(extract(epoch from l.expires_at - o.done_at) / 3600)::int as hours
       from outbox_orders o join idempo_ledger l on l.order_row_id = o.id`,
  );
  expect(rows).toEqual([{ days: 90, hours: 48 }]);
});

test.each([
  "2026-02-30T00:00:00.000000Z 42",
  "2026-13-01T00:00:00.000000Z 42",
  "2026-01-01T00:00:00.000000Z 9223372036854775808",
])("a cursor with an impossible time or ID returns 400: %s", async (text) => {
  await using t = await createHarness();
  const { get } = await t.process();
  for (const path of ["/v1/orders", "/v1/orders/unresolved"]) {
    const answer = await get(`${path}?cursor=${Buffer.from(text).toString("base64url")}`);
    expect([answer.statusCode, answer.json().errors?.[0]?.field]).toEqual([400, "query.cursor"]);
  }
});

test("the fills of an order are listed in pages, to those who may see the order", async () => {
  await using t = await createHarness();
  const { order, get } = await t.process();
  await order(bodyOf("k1"));
  await order(bodyOf("k2"), { holder: "bot" });
  const fills = ["0.1", "0.3", "0.1"].map((qty, n) => ({
    tradeId: `t-${n}`,
    qty,
    price: "30000.10",
    filledAt: "2026-01-31T09:30:00Z",
  }));
  const id = await claim(t, "k1");
  const ended = { to: "succeeded", execution: "filled", fills } as const;
  expect(await transitionOrder(t.db, { id, epoch: "1", from: ["sending"], ...ended })).toBe(true);
  const first = (await get(`/v1/orders/${id}/fills?limit=2`)).json();
  expect(first).toMatchObject({
    id,
    fills: [
      { trade_id: "t-0", place: 4, qty: "0.1", price: "30000.1", filled_at: "2026-01-31T09:30:00.000000Z" },
      { trade_id: "t-1", place: 5, qty: "0.3" },
    ],
  });
  const second = (await get(`/v1/orders/${id}/fills?limit=2&cursor=${first.next_cursor}`)).json();
  expect(second.fills).toMatchObject([{ trade_id: "t-2", place: 6 }]);
  expect(second.next_cursor).toBeUndefined();
  expect((await get("/do/order/k1")).json()).toMatchObject({
    execution: "filled",
    filled_qty: "0.5",
    average_price: "30000.1",
  });
  expect((await get(`/v1/orders/${id}/fills`, "bot")).statusCode).toBe(404);
  expect((await get(`/v1/orders/${id}/fills`, "auditor")).statusCode).toBe(200);
});
