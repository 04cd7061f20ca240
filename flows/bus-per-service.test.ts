/** Services on different buses in one deployment: each publishes at its own, and a consumer subscribes where the producer publishes. */
import { randomBytes } from "node:crypto";
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import type { EventBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { apiKeyFor, startAll } from "./all-services.ts";
import { serverUrl } from "./buses.ts";

function openBus(url: string, namespace: string): Promise<EventBus> {
  const options = { url, name: "flows", namespace };
  switch (new URL(url).protocol) {
    case "nats:":
      return openNatsBus(options);
    case "amqp:":
      return openRabbitmqBus({ ...options, consumers });
    default:
      return openPostgresBus({ url, schema: namespace });
  }
}

/** Opens real buses in a namespace of this test, and records which service publishes what, and subscribes to what, where. */
function recordingBuses() {
  const namespace = `flow${randomBytes(4).toString("hex")}`;
  const published = new Set<string>();
  const subscribed = new Set<string>();
  return {
    published,
    subscribed,
    async openBus(service: string, { url }: { readonly url: string }): Promise<EventBus> {
      const bus = await openBus(url, namespace);
      const kind = new URL(url).protocol;
      return {
        publish(events) {
          for (const { subject } of events) published.add(`${subject} ${kind}`);
          return bus.publish(events);
        },
        subscribe(subscription) {
          for (const subject of subscription.subjects) subscribed.add(`${service} ${subject} ${kind}`);
          return bus.subscribe(subscription);
        },
        check: () => bus.check(),
        [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
      };
    },
  };
}

test("a user is notified by services on NATS, RabbitMQ and PostgreSQL", { timeout: 120_000 }, async () => {
  await using busDatabase = await testDatabase({ sets: [] });
  const buses = recordingBuses();
  await using t = await startAll({
    openBus: buses.openBus,
    settings: {
      EVENT_BUS_URL: serverUrl("nats", ""),
      ENTITLEMENT_EVENT_BUS_URL: serverUrl("rabbitmq", ""),
      ACCOUNT_EVENT_BUS_URL: busDatabase.url,
      POINTS_RESERVATION_BUS_URL: serverUrl("rabbitmq", ""),
      POINTS_SCHEDULER_SECONDS: "1",
    },
  });
  const urlOf = (name: string) => t.running.find((service) => service.name === name)?.url;
  const post = async (service: "entitlement" | "points", path: string, body: object) => {
    const key = apiKeyFor(service === "points" ? "points:write" : "entitlements:write");
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "idempotency-key": "one" };
    const response = await fetch(`${urlOf(service)}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(201);
  };

  const { userId: user_id } = await t.createUser("aki");
  await post("entitlement", "/v1/entitlements/grants", {
    user_id,
    stock_keeping_unit: "item1",
    reason: "purchase",
    purchase_id: "p_1",
  });
  await post("points", "/v1/points/reservations", { user_id, point_amount: 10, execute_at: "2026-01-15T10:00:00Z" });
  const notified = async () =>
    (
      await t.db.query(
        `select event_type from notification.notifications where user_id = $1 and status = 'SENT' order by event_type`,
        [user_id],
      )
    ).rows.map(({ event_type }) => event_type);
  await until("the user is notified of all three", async () => (await notified()).length >= 3);
  expect(await notified()).toEqual(["AccountCreated", "EntitlementGranted", "PointsGranted"]);

  expect([...buses.published].sort()).toEqual([
    "account.events postgres:",
    "entitlement.events amqp:",
    "points.events nats:",
    "points.reservations amqp:",
  ]);
  expect([...buses.subscribed].sort()).toEqual([
    "gateway-bff account.events postgres:",
    "matchmaking account.events postgres:",
    "notification account.events postgres:",
    "notification entitlement.events amqp:",
    "notification matchmaking.events nats:",
    "notification orders.events nats:",
    "notification points.events nats:",
    "points points.reservations amqp:",
  ]);
});
