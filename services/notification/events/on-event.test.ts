import type { Envelope } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import { inboxDeadLetters, openInbox } from "@todoke/kernel/inbox";
import { fixedId } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import type { Send } from "../senders/send.ts";
import { accountDelivery, delivery, matchDelivery, orderDelivery, setup } from "../testing.ts";
import { sendBatch } from "../workers/notification-sender.ts";
import { notify, readEvent } from "./on-event.ts";

const never = new AbortController().signal;
const deadLetters = inboxDeadLetters("notification");

async function setupInbox() {
  const t = await setup();
  const woken = { times: 0 };
  const inboxOn = (db = t.db) =>
    openInbox({
      db,
      consumer: "notification",
      decode: readEvent,
      effect: notify({ wakeSender: () => void woken.times++ }),
    });
  return { ...t, woken, inboxOn, ...inboxOn() };
}

test("an event becomes one notification with its text, time and trace, and wakes the sender", async () => {
  await using t = await setupInbox();
  const traceparent = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
  const headers = { traceparent, trace_id: "1".repeat(32), other: "not copied" };
  expect(await t.handle([delivery(1, { headers }), delivery(2)], never)).toMatchObject([
    { kind: "done" },
    { kind: "done" },
  ]);
  expect(t.woken.times).toBe(1);
  const rows = await t.rows(`select * from notifications order by event_id`);
  expect(rows).toMatchObject([
    {
      event_id: fixedId(1),
      user_id: "u_123",
      event_type: "EntitlementGranted",
      text: { en: "You can now use item1." },
      headers: { traceparent, trace_id: "1".repeat(32) },
      payload: {
        event_id: fixedId(1),
        event_type: "EntitlementGranted",
        occurred_at: "2026-01-08T07:10:00.123456Z",
        version: "1",
        user_id: "u_123",
        stock_keeping_unit: "item1",
        source: "purchase",
        source_id: "p_456",
      },
      status: "PENDING",
      attempt_count: 0,
    },
    { event_id: fixedId(2), headers: {} },
  ]);
  expect(rows[0].headers).not.toHaveProperty("other");
  expect(rows[0].notification_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  const [exact] = await t.rows(`select occurred_at = '2026-01-08T07:10:00.123456Z' as yes from notifications`);
  expect(exact).toEqual({ yes: true });
});

test("the sender is woken after the commit, and not before", async () => {
  await using t = await setup();
  let wakes = 0;
  const effect = notify({ wakeSender: () => void wakes++ });
  await transaction(t.db, async (tx) => {
    await effect(tx, [readEvent(delivery(1))]);
    expect(wakes).toBe(0);
  });
  expect(wakes).toBe(1);
});

/** An inbox whose channel is in the process; `fails` makes the next batches fail. */
function localInbox(t: Awaited<ReturnType<typeof setup>>) {
  const state = { lines: [] as string[], flushedAt: [] as number[], fails: 0, wakes: 0 };
  const send: Send = Object.assign(
    async ({ notificationId }: { notificationId: string }) => {
      state.lines.push(notificationId);
      if (state.fails-- > 0) throw new Error("the disk is full");
      return done;
    },
    { isLocal: true as const, flush: () => void state.flushedAt.push(state.lines.length) },
  );
  const effect = notify({ wakeSender: () => void state.wakes++, sendNow: sendBatch(send) });
  return { state, effect, inbox: openInbox({ db: t.db, consumer: "notification", decode: readEvent, effect }) };
}

test("a channel in the process gets notifications before the commit that inserts them as SENT", async () => {
  await using t = await setup();
  const { state, inbox } = localInbox(t);
  expect(await inbox.handle([delivery(1), matchDelivery(2, ["u_1", "u_2", "u_1"])], never)).toMatchObject([
    { kind: "done" },
    { kind: "done" },
  ]);
  const rows = await t.rows(`select *, sent_at is not null as sent from notifications order by notification_id`);
  expect(rows).toMatchObject(
    Array(3).fill({ status: "SENT", sent: true, attempt_count: 1, payload: null, headers: {} }),
  );
  expect(state.lines.toSorted()).toEqual(rows.map(({ notification_id }) => notification_id));
  expect(state).toMatchObject({ flushedAt: [3], wakes: 0 });

  await t.db.query(`delete from processed_events`);
  await inbox.handle([delivery(1, { redelivered: true })], never); // It is not sent again.
  expect(state.lines).toHaveLength(3);
});

test("notifications of a transaction that does not commit are sent again under the same ids", async () => {
  await using t = await setup();
  const { state, effect } = localInbox(t);
  const events = [readEvent(delivery(1)), readEvent(matchDelivery(2, ["u_1", "u_2"]))];
  const crash = transaction(t.db, async (tx) => {
    await effect(tx, events);
    throw new Error("the process died");
  });
  await expect(crash).rejects.toThrow("died");
  expect(await t.statuses()).toEqual([]);
  await transaction(t.db, (tx) => effect(tx, events));
  expect(state.lines).toHaveLength(6);
  expect(state.lines.slice(3)).toEqual(state.lines.slice(0, 3));
  expect(await t.statuses()).toMatchObject(Array(3).fill({ status: "SENT" }));
});

test("what a channel in the process refuses is PENDING, and left to the sender", async () => {
  await using t = await setup();
  const { state, inbox } = localInbox(t);
  state.fails = 1;
  expect(await inbox.handle([delivery(1), delivery(2)], never)).toMatchObject([{ kind: "done" }, { kind: "done" }]);
  const rows = await t.rows(
    `select status, attempt_count, payload->>'event_id' as event from notifications order by 3`,
  );
  expect(rows).toEqual([1, 2].map((n) => ({ status: "PENDING", attempt_count: 0, event: fixedId(n) })));
  expect(state.wakes).toBeGreaterThan(0);
});

test("an event without a template is marked processed and creates no notification", async () => {
  await using t = await setupInbox();
  const changed = accountDelivery(1, "AccountRolesChanged", { roles: "ADMIN,USER" });
  expect(await t.handle([changed], never)).toMatchObject([{ kind: "done" }]);
  expect(t.woken.times).toBe(0);
  const batch = [accountDelivery(2, "AccountCreated"), delivery(3), accountDelivery(4, "AccountDeleted")];
  expect(await t.handle(batch, never)).toMatchObject([{ kind: "done" }, { kind: "done" }, { kind: "done" }]);
  expect(t.woken.times).toBe(1);
  expect(await t.rows(`select event_type from notifications order by event_id`)).toEqual([
    { event_type: "AccountCreated" },
    { event_type: "EntitlementGranted" },
  ]);
  expect(await t.rows(`select event_id from processed_events order by 1`)).toHaveLength(4);
});

test("an event of several users creates one notification each, in one commit", async () => {
  await using t = await setupInbox();
  const match = matchDelivery(1, ["u_1", "u_2"]);
  expect(await t.handle([match, delivery(2), match], never)).toMatchObject([
    { kind: "done" },
    { kind: "done" },
    { kind: "done" },
  ]);
  await t.db.query(`delete from processed_events`); // The unique key holds even without the inbox.
  await t.handle([{ ...match, redelivered: true }], never);
  expect(t.woken.times).toBe(2);
  const rows = await t.rows(`select event_id, user_id, data, xid from notifications order by event_id, user_id`);
  const mine = { match_id: "m_1", mode: "ranked" };
  expect(rows).toMatchObject([
    { event_id: fixedId(1), user_id: "u_1", data: { ...mine, ticket_id: "t_1", team: 1 } },
    { event_id: fixedId(1), user_id: "u_2", data: { ...mine, ticket_id: "t_2", team: 2 } },
    { event_id: fixedId(2), user_id: "u_123", data: null },
  ]);
  expect(new Set(rows.map(({ xid }) => xid)).size).toBe(1);
});

test("an order notifies the user it names, and an order without user_id creates no notification", async () => {
  await using t = await setupInbox();
  const outcomes = await t.handle([orderDelivery(1), orderDelivery(2, "u_123")], never);
  expect(outcomes).toMatchObject([{ kind: "done" }, { kind: "done" }]);
  expect(await t.rows(`select event_id, user_id, data from notifications`)).toEqual([
    { event_id: fixedId(2), user_id: "u_123", data: { order_id: "o_2", client_order_id: "tdk-2" } },
  ]);
  expect(await t.rows(`select event_id from processed_events`)).toHaveLength(2);
});

test("a user whom an event lists twice gets one notification", async () => {
  await using t = await setupInbox();
  await t.handle([matchDelivery(1, ["u_1", "u_2", "u_1"])], never);
  expect(await t.rows(`select user_id, data->>'ticket_id' as ticket from notifications order by user_id`)).toEqual([
    { user_id: "u_1", ticket: "t_1" },
    { user_id: "u_2", ticket: "t_2" },
  ]);
});

test("an event delivered many times, also at two processes at once, is one notification", async () => {
  await using t = await setupInbox();
  const other = t.inboxOn(t.open());
  await Promise.all([
    t.handle([delivery(1), delivery(1)], never),
    other.handle([delivery(1)], never),
    other.handle([delivery(1, { redelivered: true })], never),
  ]);
  await t.handle([delivery(1, { redelivered: true })], never);
  expect(await t.rows(`select event_id from notifications`)).toEqual([{ event_id: fixedId(1) }]);
});

test("an event redelivered after its inbox row was deleted is still one notification", async () => {
  await using t = await setupInbox();
  await t.handle([delivery(1)], never);
  await t.db.query(`delete from processed_events`);
  expect(await t.handle([delivery(1), delivery(2)], never)).toMatchObject([{ kind: "done" }, { kind: "done" }]);
  expect(await t.rows(`select event_id from notifications order by 1`)).toHaveLength(2);
});

test("an unknown event type is dead-lettered and can be redriven after an upgrade", async () => {
  await using t = await setupInbox();
  const newer = delivery(1, { eventType: "EntitlementGifted" });
  expect(await t.handle([newer, delivery(2)], never)).toMatchObject([{ kind: "dead" }, { kind: "done" }]);
  expect(await t.rows(`select event_id from notifications`)).toEqual([{ event_id: fixedId(2) }]);
  const [dead] = await deadLetters.list(t.db, { limit: 10 });
  expect(dead?.last_error).toMatch(/this build does not know the event type EntitlementGifted; deploy one that does/);
  const shown = await deadLetters.show(t.db, dead?.id ?? "0");
  expect(shown?.payload_base64).toBe(Buffer.from(newer.payload).toString("base64"));

  // As the newer build reads it.
  const read = (event: Envelope) => readEvent({ ...event, eventType: "EntitlementGranted" });
  const { redriver } = openInbox({
    db: t.db,
    consumer: "notification",
    decode: read,
    effect: notify({ wakeSender: () => {} }),
  });
  await deadLetters.redrive(t.db, [dead?.id ?? "0"], { by: "aki", reason: "upgraded" });
  expect(await redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await t.rows(`select event_id from notifications order by 1`)).toEqual([
    { event_id: fixedId(1) },
    { event_id: fixedId(2) },
  ]);
});

test("an unreadable event is dead-lettered with its bytes and does not block others", async () => {
  await using t = await setupInbox();
  const bytes = Buffer.from([0xff, 0x00, 0x01]);
  expect(await t.handle([delivery(1, { payload: bytes }), delivery(2)], never)).toMatchObject([
    { kind: "dead" },
    { kind: "done" },
  ]);
  expect(await t.rows(`select event_id, payload, status from inbox_dlq`)).toEqual([
    { event_id: fixedId(1), payload: bytes, status: "DEAD" },
  ]);
  expect(await t.rows(`select event_id from notifications`)).toEqual([{ event_id: fixedId(2) }]);
});

test("handling and redriving an event needs one database connection", async () => {
  await using t = await setupInbox();
  const inbox = t.inboxOn(t.open({ poolMax: 1, connectTimeoutMs: 30_000 }));
  expect(await inbox.handle([delivery(1), delivery(2)], never)).toMatchObject([{ kind: "done" }, { kind: "done" }]);
  const bytes = delivery(3).payload;
  await inbox.handle([delivery(3, { payload: Buffer.from([0xff]) })], never);
  await t.db.query(`update inbox_dlq set payload = $1`, [bytes]);
  const [dead] = await deadLetters.list(t.db, { limit: 10 });
  await deadLetters.redrive(t.db, [dead?.id ?? "0"], { by: "aki", reason: "the payload was repaired" });
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
});
