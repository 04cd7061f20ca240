import { buildHttpApp } from "@todoke/http";
import { fixedId } from "@todoke/kernel/testing";
import { dead } from "@todoke/kernel/worker";
import { redriveDeadLetter } from "@todoke/service";
import { expect, test } from "vitest";
import { deadNotifications } from "../store/dead-notifications.ts";
import { setup } from "../testing.ts";
import { notificationSender } from "../workers/notification-sender.ts";
import { deadNotificationRoutes } from "./dead-notifications.ts";
import { debugInboxRoutes } from "./debug-inbox.ts";

const by = { redriven_by: "aki", reason: "the receiver is up again" };

async function serve() {
  const t = await setup();
  const { db } = t;
  const app = await buildHttpApp({ title: "notification", version: "0", log: { level: "silent" } });
  debugInboxRoutes(app, { db });
  const redrive = redriveDeadLetter({ db, deadLetters: deadNotifications, onRedriven: () => {} });
  deadNotificationRoutes(app, { db, redrive });
  const ask = async (url: string, payload?: object) => {
    const response = await app.inject(payload ? { method: "POST", url, payload } : { url });
    return { status: response.statusCode, ...response.json() };
  };
  return {
    ...t,
    ask,
    async [Symbol.asyncDispose]() {
      await app.close();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("the debug inbox lists the notifications of one user, newest first, in pages", async () => {
  await using t = await serve();
  await t.write(2, 1, 3);
  await t.db.query(`update notifications set occurred_at = '2026-01-08T07:00:02Z' where notification_id = $1`, [
    fixedId(1), // a microsecond older than number 2
  ]);
  const ids = (page: { notifications: { notification_id: string }[] }) =>
    page.notifications.map(({ notification_id }) => notification_id);
  const first = await t.ask("/debug/notification/inbox/u_123?limit=2");
  expect(ids(first as never)).toEqual([fixedId(3), fixedId(2)]);
  const second = await t.ask(`/debug/notification/inbox/u_123?limit=2&cursor=${first.next_cursor}`);
  expect(ids(second as never)).toEqual([fixedId(1)]);
  expect(second).not.toHaveProperty("next_cursor");
  expect(second.notifications[0]).toEqual({
    notification_id: fixedId(1),
    event_id: fixedId(1_001),
    event_type: "EntitlementGranted",
    text: { en: "item1", ja: "item1" },
    status: "PENDING",
    attempt_count: 0,
    occurred_at: "2026-01-08T07:00:02.000000Z",
    created_at: expect.stringMatching(/Z$/),
    next_retry_at: expect.stringMatching(/Z$/),
  });
  expect(await t.ask("/debug/notification/inbox/u_12")).toEqual({ status: 200, user_id: "u_12", notifications: [] });
});

test("notifications of the same time are each listed once, in pages", async () => {
  await using t = await serve();
  await t.write(1, 2, 3);
  await t.db.query(`update notifications set occurred_at = '2026-01-08T07:00:00Z'`);
  const ids: string[] = [];
  for (let cursor = ""; cursor !== undefined; ) {
    const page = await t.ask(`/debug/notification/inbox/u_123?limit=1${cursor && `&cursor=${cursor}`}`);
    ids.push(...page.notifications.map((entry: { notification_id: string }) => entry.notification_id));
    cursor = page.next_cursor;
  }
  expect(ids).toEqual([fixedId(3), fixedId(2), fixedId(1)]);
});

test("the debug inbox shows data", async () => {
  await using t = await serve();
  await t.writeWithData(1, { match_id: "m_1", team: 2 });
  const { notifications } = await t.ask("/debug/notification/inbox/u_123");
  expect(notifications).toMatchObject([{ notification_id: fixedId(1), data: { match_id: "m_1", team: 2 } }]);
});

test("invalid requests are rejected by name", async () => {
  await using t = await serve();
  for (const [query, field] of [
    ["limit=101", "query.limit"],
    ["limit=0", "query.limit"],
    ["cursor=nonsense", "query.cursor"],
    ["cursor=99999999999999999.00000000-0000-7000-8000-000000000001", "query.cursor"],
  ]) {
    const refused = await t.ask(`/debug/notification/inbox/u_123?${query}`);
    expect([refused.status, refused.errors[0].field]).toEqual([400, field]);
  }
  const rejected = await t.ask(`/debug/notification/dlq/${fixedId(1)}/redrive`, {});
  expect(rejected.errors.map(({ field }: { field: string }) => field)).toEqual(["body.redriven_by", "body.reason"]);
  expect((await t.ask("/debug/notification/dlq/nonsense")).status).toBe(400);
});

test("a dead-lettered notification is listed, shown and redriven once", async () => {
  await using t = await serve();
  await t.write(1, 2);
  await using sender = notificationSender({ db: t.db, send: async () => dead("gone") });
  await sender.runOnce();
  const first = await t.ask("/debug/notification/dlq?limit=1");
  expect(first.notifications).toMatchObject([{ last_error: "gone", attempt_count: 1 }]);
  const second = await t.ask(`/debug/notification/dlq?limit=1&cursor=${first.next_cursor}`);
  expect(second.notifications).toHaveLength(1);
  expect(second).not.toHaveProperty("next_cursor");

  const one = `/debug/notification/dlq/${fixedId(1)}`;
  expect(await t.ask(one)).toMatchObject({
    text: { en: "item1" },
    data: null,
    payload: { event_id: fixedId(1_001), stock_keeping_unit: "item1" },
    status: "FAILED",
    redriven_at: null,
  });
  expect(await t.ask(`${one}/redrive`, by)).toEqual({ status: 200, redriven: true });
  expect(await t.ask(`${one}/redrive`, by)).toEqual({ status: 200, redriven: false });
  expect(await t.ask(one)).toMatchObject({
    status: "PENDING",
    redriven_at: expect.stringMatching(/Z$/),
    redrives: [{ ...by, attempt_count: 1, last_error: "gone" }],
  });
  expect((await t.ask("/debug/notification/dlq")).notifications).toMatchObject([{ notification_id: fixedId(2) }]);
  expect(await t.ask(`/debug/notification/dlq/${fixedId(9)}/redrive`, by)).toMatchObject({
    status: 404,
    code: "dead-letter-not-found",
  });
});
