import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { resolveOrder } from "../commands/resolve-order.ts";
import { sendOrders } from "../workers/send-orders.ts";
import { crashSender, createSenderHarness } from "../workers/testing/harness.ts";

test("an order cannot be resolved as not taken within the window of its last request", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  const resolution = { id: "1", reason: "not at the broker", by: "aki" } as const;
  const refused = resolveOrder(s.db, { ...resolution, as: "not-taken" });
  await expect(refused).rejects.toMatchObject({ code: "order-window-open", status: 409 });
  const { retryAfterSeconds } = (await refused.catch((error) => error)) as { retryAfterSeconds: number };
  expect(retryAfterSeconds).toBeGreaterThan(1);
  expect(retryAfterSeconds).toBeLessThanOrEqual(s.broker.windowMs / 1_000);
  expect(await s.rows(`select status from outbox_orders union all select "as" from order_resolutions`)).toEqual([
    { status: "unknown" },
  ]);
  await s.db.query(`update outbox_orders set window_ends_at = clock_timestamp()`);
  expect(await resolveOrder(s.db, { ...resolution, as: "not-taken" })).toMatchObject({ status: "pending" });
});

test("an order can be resolved as taken at once, and either way without a window", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  const senderWithoutWindow = sendOrders({ ...s, broker: { ...s.broker, windowMs: 0 } });
  const resolution = { reason: "the broker's records", by: "aki" };
  await s.accept([1]);
  s.fault("lost-after", "lost-before");
  await s.sender.runOnce();
  expect(await resolveOrder(s.db, { ...resolution, id: "1", as: "taken" })).toMatchObject({ status: "succeeded" });
  await s.accept([2]);
  await senderWithoutWindow.runOnce();
  expect(await resolveOrder(s.db, { ...resolution, id: "2", as: "not-taken" })).toMatchObject({ status: "pending" });
});

test("an order resolved as not taken is sent again, even without attempts left", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  for (let n = 0; n < 6; n++) await crashSender(s, { dispatched: true });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 7 }]);
  await resolveOrder(s.db, { id: "1", as: "not-taken", reason: "not at the broker", by: "aki" });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 1 }]);
  expect(s.sends).toHaveLength(1);
});

test("a resolution waits for a concurrent dispatch and then sees its window", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.db.query(`update outbox_orders set window_ends_at = now()`);
  const sender = await s.db.connect();
  await sender.query(`begin; update outbox_orders set window_ends_at = now() + interval '1 hour'`);
  const resolved = resolveOrder(s.db, { id: "1", as: "not-taken", reason: "not at the broker", by: "aki" });
  resolved.catch(() => {});
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await until("it waits", async () => (await s.rows(waits)).length === 1);
  await sender.query("commit");
  sender.release();
  await expect(resolved).rejects.toMatchObject({ code: "order-window-open" });
});
