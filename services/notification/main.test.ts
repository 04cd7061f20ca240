import { hash } from "node:crypto";
import { BusUnavailable, type EventBus, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { configErrors, start } from "./main.ts";
import { InboxClient } from "./stream/testing.ts";
import { delivery, setup } from "./testing.ts";

const env = {
  TODOKE_API_KEYS: `shop=read=${hash("sha256", "tdk_shop", "hex")}`,
  LOG_LEVEL: "silent",
  NOTIFICATION_PORT: "0",
};

/** A bus that rejects subscriptions until `recover` is called. */
function unavailableBus(): EventBus & { recover(): void } {
  const bus = memoryBus(new MemoryBroker());
  let unavailable = true;
  return {
    publish: (events) => bus.publish(events),
    subscribe: (options) => (unavailable ? Promise.reject(new BusUnavailable("not yet")) : bus.subscribe(options)),
    check: () => bus.check(),
    recover() {
      unavailable = false;
    },
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

test("the service starts while the message broker is unavailable, and consumes events later", async () => {
  await using t = await setup();
  const bus = unavailableBus();
  await using service = await start({ ...env, DATABASE_URL: t.url }, { openBus: async () => bus });
  // Not ready while the event loop lags after a slow start.
  await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status).toBe(200);
  bus.recover();
  const inbox = async () => {
    const response = await fetch(`${service.opsUrl}/debug/notification/inbox/u_123`);
    return ((await response.json()) as { notifications: { status: string }[] }).notifications;
  };
  await until("an event is sent", async () => {
    await bus.publish([delivery(1)]); // the memory bus keeps events from the first subscription on
    return (await inbox())[0]?.status === "SENT";
  });
  expect(await inbox()).toHaveLength(1);
});

test("outside development, debug routes are on the ops listener only", async () => {
  await using t = await setup();
  const openBus = async () => memoryBus(new MemoryBroker());
  await using service = await start({ ...env, DATABASE_URL: t.url }, { openBus });
  expect((await fetch(`${service.url}/debug/notification/inbox/u_123`)).status).toBe(404);
  expect((await fetch(`${service.opsUrl}/debug/notification/inbox/u_123`)).status).toBe(200);
});

test("sent notifications and redriven dead letters are kept for NOTIFICATION_KEEP_DAYS", async () => {
  await using t = await setup();
  await t.write(1, 2, 3, 4);
  await t.db.query(`
    update notifications set status = 'SENT', sent_at = now() - n * interval '1 day'
      from (select notification_id, row_number() over (order by notification_id) as n from notifications) o
     where o.notification_id = notifications.notification_id;
    insert into notification_dlq (notification_id, event_id, user_id, event_type, text, attempt_count, redriven_at)
    select notification_id, event_id, user_id, event_type, text, 10, sent_at from notifications`);
  const days = async (table: string, since: string) =>
    (
      await t.rows(`select round(extract(epoch from now() - ${since}) / 86400)::int as days from ${table} order by 1`)
    ).map((row) => row.days);
  const openBus = async () => memoryBus(new MemoryBroker());
  await using _ = await start({ ...env, DATABASE_URL: t.url, NOTIFICATION_KEEP_DAYS: "3" }, { openBus });
  // Rows of exactly three days are older than that by now.
  await expect.poll(() => days("notifications", "sent_at")).toEqual([1, 2]);
  await expect.poll(() => days("notification_dlq", "redriven_at")).toEqual([1, 2]);
});

test("inbox retention shorter than broker retention is a settings error", () => {
  const errors = configErrors({ ...env, DATABASE_URL: "postgres://localhost", EVENT_BUS_KEEP_DAYS: "30" });
  expect(errors).toEqual([expect.stringContaining("keep them for at least 37 days")]);
});

test("a process with the role api streams notifications that other processes create", async () => {
  await using t = await setup();
  const broker = new MemoryBroker();
  const openBus = async () => memoryBus(broker);
  const production = { ...env, DATABASE_URL: t.url };
  await using api = await start({ ...production, NOTIFICATION_ROLES: "api" }, { openBus });
  await using consumer = await start({ ...production, NOTIFICATION_ROLES: "consumer" }, { openBus });
  const reading = { authorization: "Bearer tdk_shop" };
  const path = "/v1/users/u_123/inbox";
  expect((await fetch(consumer.url + path, { headers: reading })).status).toBe(404);
  await using client = new InboxClient();
  expect(await client.connect(`${api.url}${path}/stream`, reading)).toBe(200);
  expect(await (await fetch(`${api.opsUrl}/metrics`)).text()).toContain("\nnotification_streams_current 1\n");
  await using bus = await openBus();
  await until("an event is streamed", async () => {
    await bus.publish([delivery(1)]); // the memory bus keeps events from the first subscription on
    return client.received.length > 0;
  });
  expect(client.received).toMatchObject([{ event_type: "EntitlementGranted", text: { en: "You can now use item1." } }]);
});
