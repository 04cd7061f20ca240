import { hash } from "node:crypto";
import { MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { readBacklog } from "@todoke/kernel/claims";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { deadNotifications } from "./store/dead-notifications.ts";
import { notifications } from "./store/notifications.ts";
import { failingSender, notificationService, setup } from "./testing.ts";

test("/metrics counts sent, retried and failed notifications and the backlog", async () => {
  await using t = await setup();
  await t.write(1, 2, 3);
  await t.db.query(`update notifications set occurred_at = now() - interval '2 minutes'`);
  await t.db.query(`update notifications set next_retry_at = now() + interval '1 hour' where event_id = $1`, [
    fixedId(1_001), // notification 1 is not due
  ]);
  const sender = failingSender();
  sender.fail(3); // of the two due ones, one fails twice and is FAILED, the other fails once
  const env = {
    DATABASE_URL: t.url,
    TODOKE_API_KEYS: `shop=read=${hash("sha256", "tdk_shop", "hex")}`,
    LOG_LEVEL: "silent",
    NOTIFICATION_PORT: "0",
    NOTIFICATION_ATTEMPTS_MAX: "2",
    NOTIFICATION_BACKOFF_BASE_MS: "1",
    NOTIFICATION_BACKOFF_CAP_MS: "1",
  };
  const openBus = async () => memoryBus(new MemoryBroker());
  await using service = await notificationService(() => sender.send).start(env, { openBus });
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     values ('notification', $1, 'T', 's', 'a', '', '{}', ''), ('another', $1, 'T', 's', 'a', '', '{}', '')`,
    [fixedId(9)],
  );
  const ended = `select from notifications where status in ('SENT', 'FAILED')`;
  await until("two are SENT or FAILED", async () => (await t.db.query(ended)).rowCount === 2);

  const lines = async () => (await (await fetch(`${service.opsUrl}/metrics`)).text()).split("\n");
  // The process counts shortly after the commit.
  await expect
    .poll(lines)
    .toEqual(
      expect.arrayContaining([
        'notification_delivery_total{result="sent"} 1',
        'notification_delivery_total{result="retry"} 2',
        'notification_delivery_total{result="failed"} 1',
        "notification_dlq_total 1",
        "notification_delivery_e2e_delay_seconds_count 1",
        'notification_delivery_e2e_delay_seconds_bucket{le="60"} 0',
        'notification_delivery_e2e_delay_seconds_bucket{le="300"} 1',
        'notification_backlog_current{status="pending"} 1',
        'notification_backlog_current{status="processing"} 0',
        "notification_backlog_age_seconds 0",
        "notification_dlq_current 1",
        'todoke_inbox_dead_current{consumer="notification"} 1',
      ]),
    );
});

test("the backlog has an age only while a notification is due", async () => {
  await using t = await setup();
  await t.write(1, 2);
  await t.db.query(`update notifications set next_retry_at = now() - interval '90 seconds'`);
  const backlog = () => readBacklog(t.db, notifications.table);
  expect(await backlog()).toMatchObject({ ready: 2, claimed: 0 });
  expect(await deadNotifications.count(t.db)).toBe(0);
  expect((await backlog()).oldestDueMs).toBeGreaterThanOrEqual(90_000);
  await t.db.query(`update notifications set next_retry_at = now() + interval '90 seconds'`);
  expect((await backlog()).oldestDueMs).toBe(0);
});
