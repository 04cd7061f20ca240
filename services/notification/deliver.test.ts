import { removeFinished } from "@todoke/kernel/retention";
import { fixedId, until } from "@todoke/kernel/testing";
import { dead, done, release } from "@todoke/kernel/worker";
import { redriveDeadLetter } from "@todoke/service";
import { expect, test } from "vitest";
import { deliver } from "./deliver.ts";
import type { Send } from "./senders/index.ts";
import { deadNotifications, redrivenNotifications } from "./store/dead-notifications.ts";
import { notifications, sentNotifications } from "./store/notifications.ts";
import { failingSender, setup } from "./testing.ts";

const settings = { attemptsMax: 3, backoff: { baseMs: 0, capMs: 0 } };

test("a notification is sent, a failed one waits for its next try, and one that never can be sent is FAILED at once", async () => {
  await using t = await setup();
  await t.write(1, 2, 3);
  const send: Send = async ({ notificationId }) => {
    if (notificationId === fixedId(2)) throw new Error("busy");
    return notificationId === fixedId(3) ? dead("gone") : done;
  };
  await using sender = deliver({ db: t.db, send });
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

test("after the last attempt it is FAILED and in the DLQ; the two are one statement, or neither is", async () => {
  await using t = await setup();
  await t.write(1);
  const failing = failingSender();
  failing.fail(Number.POSITIVE_INFINITY);
  await using sender = deliver({ db: t.db, send: failing.send, settings });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.statuses()).toMatchObject([{ status: "FAILED", attempt_count: 3 }]);
  expect(await t.rows(`select attempt_count, text, user_id from notification_dlq`)).toEqual([
    { attempt_count: 3, text: { en: "item1", ja: "item1" }, user_id: "u_123" },
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

test("a redrive gives all attempts back under the same id, once; failing again opens the same dead letter", async () => {
  await using t = await setup();
  await t.write(1);
  const failing = failingSender();
  failing.fail(6);
  await using sender = deliver({ db: t.db, send: failing.send, settings });
  const woken: string[] = [];
  const again = redriveDeadLetter({
    db: t.db,
    deadLetters: deadNotifications,
    onRedriven: () => woken.push("woken"),
  });
  const redriven = (n: number) => again(fixedId(n), { by: "aki", reason: "mended" });
  for (let n = 1; n <= 3; n++) await sender.runOnce();
  const both = await Promise.all([redriven(1), redriven(1)]);
  expect(both.filter(({ redriven }) => redriven)).toHaveLength(1);
  expect(woken).toHaveLength(1);
  expect(await t.rows(`select redriven_at is null as open from notification_dlq`)).toEqual([{ open: false }]);

  for (let n = 1; n <= 3; n++) await sender.runOnce();
  expect(await t.rows(`select redriven_at is null as open from notification_dlq`)).toEqual([{ open: true }]);
  await redriven(1);
  expect(await sender.runOnce()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toMatchObject([{ status: "SENT", attempt_count: 1 }]);
  expect(new Set(failing.tried)).toEqual(new Set([fixedId(1)]));
  expect(await redriven(1)).toEqual({ redriven: false });
  await expect(redriven(2)).rejects.toMatchObject({ code: "dead-letter-not-found" });
});

test("a notification whose process died is sent by another, under the same id", async () => {
  await using t = await setup();
  await t.write(1);
  await notifications.claim(t.db, { limit: 1, leaseMs: 0, worker: "a process that died" });
  const { send, tried } = failingSender();
  await using sender = deliver({ db: t.db, send });
  expect(await sender.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(tried).toEqual([fixedId(1)]);
});

test("while the receiver takes nothing, no attempt is counted and it is asked again only after a while", async () => {
  await using t = await setup();
  await t.write(1);
  const restMs = 300;
  const askedAt: number[] = [];
  const send: Send = async () => (askedAt.push(performance.now()) === 1 ? release("closed for now", restMs) : done);
  await using sender = deliver({ db: t.db, send, settings: { pollMs: 1 } });
  sender.start();
  const isSent = async () => (await t.statuses())[0]?.status === "SENT";
  await until("it is sent", isSent);
  expect(await t.statuses()).toMatchObject([{ attempt_count: 1 }]);
  const [first = 0, second = 0, ...more] = askedAt;
  // The rest is counted by another clock than ours; without one it would be asked at the next poll.
  expect(second - first).toBeGreaterThan(restMs / 2);
  expect(more).toEqual([]);
});

test("one receiver that takes nothing does not keep the others from being told", async () => {
  await using t = await setup();
  await t.write(1, 2, 3, 4);
  const isClosed = (id: string) => id === fixedId(1) || id === fixedId(2);
  const send: Send = async ({ notificationId }) =>
    isClosed(notificationId) ? release("closed for an hour", 3_600_000) : done;
  await using sender = deliver({ db: t.db, send, settings: { batchMax: 1, concurrency: 1 } });
  sender.start();
  const states = `select status, attempt_count, next_retry_at > now() + interval '30 minutes' as put_off
    from notifications order by notification_id`;
  const [waits, isSent] = [{ status: "PENDING", attempt_count: 0, put_off: true }, { status: "SENT" }];
  // All four at once: whoever's turn comes last is still held for a moment when the others are done.
  await expect.poll(() => t.rows(states)).toMatchObject([waits, waits, isSent, isSent]);
});

test("old SENT ones and redriven dead letters are removed; what is not finished stays, however old", async () => {
  await using t = await setup();
  await t.write(1, 2, 3);
  const send: Send = async ({ notificationId }) => (notificationId === fixedId(1) ? done : dead("gone"));
  await using sender = deliver({ db: t.db, send });
  await sender.runOnce();
  await deadNotifications.redrive(t.db, [fixedId(3)], { by: "aki", reason: "mended" });
  await t.db.query(`update notifications set sent_at = now() - interval '31 days' where status = 'SENT'`);
  await t.db.query(`update notifications set next_retry_at = 'epoch', created_at = 'epoch'`);
  await t.db.query(`update notification_dlq set failed_at = 'epoch'`);
  await t.db.query(`update notification_dlq set redriven_at = 'epoch' where redriven_at is not null`);
  expect(await removeFinished(t.db, sentNotifications(30 * 86_400_000))).toBe(1);
  expect(await removeFinished(t.db, redrivenNotifications(30 * 86_400_000))).toBe(1);
  expect((await t.statuses()).map(({ status }) => status)).toEqual(["FAILED", "PENDING"]);
  expect(await t.rows(`select notification_id from notification_dlq`)).toEqual([{ notification_id: fixedId(2) }]);
});
