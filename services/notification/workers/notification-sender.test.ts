import { deleteFinished } from "@todoke/kernel/retention";
import { fixedId, until } from "@todoke/kernel/testing";
import { dead, done, release } from "@todoke/kernel/worker";
import { redriveDeadLetter } from "@todoke/service";
import { expect, test } from "vitest";
import type { Send } from "../senders/send.ts";
import { deadNotifications, redrivenNotifications } from "../store/dead-notifications.ts";
import { notifications, sentNotifications } from "../store/notifications.ts";
import { failingSender, setup } from "../testing.ts";
import { notificationSender } from "./notification-sender.ts";

const settings = { attemptsMax: 3, backoff: { baseMs: 0, capMs: 0 } };

test("a sent notification is SENT, a failed one is retried, and a dead one is FAILED at once", async () => {
  await using t = await setup();
  await t.write(1, 2, 3);
  const send: Send = async ({ notificationId }) => {
    if (notificationId === fixedId(2)) throw new Error("busy");
    return notificationId === fixedId(3) ? dead("gone") : done;
  };
  await using sender = notificationSender({ db: t.db, send });
  expect(await sender.runOnce()).toMatchObject({ claimed: 3, done: 1, retry: 1, dead: 1 });
  expect(await t.statuses()).toEqual([
    { status: "SENT", attempt_count: 1, last_error: null },
    { status: "PENDING", attempt_count: 1, last_error: "Error: busy" },
    { status: "FAILED", attempt_count: 1, last_error: "gone" },
  ]);
  expect(await t.rows(`select notification_id, last_error from notification_dlq`)).toEqual([
    { notification_id: fixedId(3), last_error: "gone" },
  ]);
});

test("after the last attempt a notification is FAILED and in the DLQ, by one statement", async () => {
  await using t = await setup();
  await t.writeWithData(1, { ticket_id: "t_1" });
  const failing = failingSender();
  failing.fail(Number.POSITIVE_INFINITY);
  await using sender = notificationSender({ db: t.db, send: failing.send, settings });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.statuses()).toMatchObject([{ status: "FAILED", attempt_count: 3 }]);
  expect(await t.rows(`select attempt_count, text, data, payload, user_id from notification_dlq`)).toEqual([
    {
      attempt_count: 3,
      text: { en: "item1", ja: "item1" },
      data: { ticket_id: "t_1" },
      payload: { event_id: fixedId(1_001), event_type: "EntitlementGranted", stock_keeping_unit: "item1" },
      user_id: "u_123",
    },
  ]);

  await t.write(2);
  await t.db.query(`alter table notification_dlq add constraint full_up check (dlq_id < 0) not valid`);
  const [claimed] = await notifications.claim(t.db, { limit: 1, leaseMs: 600_000, worker: "test" });
  if (!claimed) throw new Error("nothing was claimed");
  await expect(notifications.settle(t.db, [{ claim: claimed.claim, outcome: dead("gone") }])).rejects.toThrow(
    "full_up",
  );
  expect((await t.statuses())[1]).toMatchObject({ status: "PROCESSING" });
});

test("a redrive resets the attempts once, and another failure reopens the dead letter", async () => {
  await using t = await setup();
  await t.write(1);
  const failing = failingSender();
  failing.fail(6);
  await using sender = notificationSender({ db: t.db, send: failing.send, settings });
  const woken: string[] = [];
  const redrive = redriveDeadLetter({
    db: t.db,
    deadLetters: deadNotifications,
    onRedriven: () => woken.push("woken"),
  });
  const redriven = (n: number) => redrive(fixedId(n), { by: "aki", reason: "fixed" });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  const both = await Promise.all([redriven(1), redriven(1)]);
  expect(both.filter(({ redriven }) => redriven)).toHaveLength(1);
  expect(woken).toHaveLength(1);
  expect(await t.rows(`select redriven_at is null as open from notification_dlq`)).toEqual([{ open: false }]);

  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.rows(`select redriven_at is null as open from notification_dlq`)).toEqual([{ open: true }]);
  await redriven(1);
  expect(await sender.runOnce()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toEqual([{ status: "SENT", attempt_count: 1, last_error: null }]);
  expect(new Set(failing.attempted)).toEqual(new Set([fixedId(1)]));
  expect(await redriven(1)).toEqual({ redriven: false });
  await expect(redriven(2)).rejects.toMatchObject({ code: "dead-letter-not-found" });
});

test("a redriven notification is neither listed nor counted as dead", async () => {
  await using t = await setup();
  await t.write(1, 2);
  await using sender = notificationSender({ db: t.db, send: async () => dead("gone") });
  await sender.runOnce();
  expect(await deadNotifications.count(t.db)).toBe(2);
  await deadNotifications.redrive(t.db, [fixedId(1)], { by: "aki", reason: "fixed" });
  const listed = (await deadNotifications.list(t.db, { limit: 10 })).map(({ id }) => id);
  expect([listed, await deadNotifications.count(t.db)]).toEqual([[fixedId(2)], 1]);
});

test("a notification of a crashed process is sent by another under the same id", async () => {
  await using t = await setup();
  await t.write(1);
  await notifications.claim(t.db, { limit: 1, leaseMs: 0, worker: "crashed" });
  const { send, attempted } = failingSender();
  await using sender = notificationSender({ db: t.db, send });
  expect(await sender.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(attempted).toEqual([fixedId(1)]);
});

test("a released notification is sent after the delay, and no attempt is counted", async () => {
  await using t = await setup();
  await t.write(1);
  const delayMs = 300;
  const sentAt: number[] = [];
  const send: Send = async () => (sentAt.push(performance.now()) === 1 ? release("closed for now", delayMs) : done);
  await using sender = notificationSender({ db: t.db, send, settings: { pollMs: 1 } });
  sender.start();
  const isSent = async () => (await t.statuses())[0]?.status === "SENT";
  await until("it is sent", isSent);
  expect(await t.statuses()).toMatchObject([{ attempt_count: 1 }]);
  const [first = 0, second = 0, ...more] = sentAt;
  // The database's clock measures the delay; without a delay the next poll would send it.
  expect(second - first).toBeGreaterThan(delayMs / 2);
  expect(more).toEqual([]);
});

test("notifications of an unavailable receiver do not block others", async () => {
  await using t = await setup();
  await t.write(1, 2, 3, 4);
  const isClosed = (id: string) => id === fixedId(1) || id === fixedId(2);
  const send: Send = async ({ notificationId }) =>
    isClosed(notificationId) ? release("closed for an hour", 3_600_000) : done;
  await using sender = notificationSender({ db: t.db, send, settings: { batchMax: 1, concurrency: 1 } });
  sender.start();
  const states = `select status, attempt_count, next_retry_at > now() + interval '30 minutes' as delayed
    from notifications order by notification_id`;
  const [waits, isSent] = [{ status: "PENDING", attempt_count: 0, delayed: true }, { status: "SENT" }];
  // All four in one poll: the last one may still be claimed when the others are settled.
  await expect.poll(() => t.rows(states)).toMatchObject([waits, waits, isSent, isSent]);
});

test("retention deletes old SENT notifications and redriven dead letters, and nothing unfinished", async () => {
  await using t = await setup();
  await t.write(1, 2, 3);
  const send: Send = async ({ notificationId }) => (notificationId === fixedId(1) ? done : dead("gone"));
  await using sender = notificationSender({ db: t.db, send });
  await sender.runOnce();
  await deadNotifications.redrive(t.db, [fixedId(3)], { by: "aki", reason: "fixed" });
  await t.db.query(`update notifications set sent_at = now() - interval '31 days' where status = 'SENT'`);
  await t.db.query(`update notifications set next_retry_at = 'epoch', created_at = 'epoch'`);
  await t.db.query(`update notification_dlq set failed_at = 'epoch'`);
  await t.db.query(`update notification_dlq set redriven_at = 'epoch' where redriven_at is not null`);
  expect(await deleteFinished(t.db, sentNotifications(30 * 86_400_000))).toBe(1);
  expect(await deleteFinished(t.db, redrivenNotifications(30 * 86_400_000))).toBe(1);
  expect((await t.statuses()).map(({ status }) => status)).toEqual(["FAILED", "PENDING"]);
  expect(await t.rows(`select notification_id from notification_dlq`)).toEqual([{ notification_id: fixedId(2) }]);
});

test("a notification that a channel in the process refuses is retried until it is FAILED", async () => {
  await using t = await setup();
  const send: Send = Object.assign(
    async ({ notificationId }: { notificationId: string }) => {
      if (notificationId === fixedId(2)) throw new Error("the disk is full");
      return done;
    },
    { isLocal: true as const },
  );
  await using sender = notificationSender({ db: t.db, send, settings: { ...settings, pollMs: 50 } });
  sender.start();
  await t.write(1, 2, 3);
  sender.wake();
  const states = async () => (await t.statuses()).map(({ status }) => status).join(" ");
  await until("the second is FAILED", async () => (await states()) === "SENT FAILED SENT");
  expect((await t.statuses())[1]).toMatchObject({ attempt_count: 3 });
  expect(await t.rows(`select notification_id from notification_dlq`)).toEqual([{ notification_id: fixedId(2) }]);
});
