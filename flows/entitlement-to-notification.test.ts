/** The main path, end to end, on every bus: from a grant over HTTP to the user's notification (seed 001). */
import { hash, randomBytes } from "node:crypto";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import * as entitlement from "@todoke/entitlement";
import type { Envelope, EventBus, Handler } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { retry } from "@todoke/kernel/worker";
import { delivery, failingSender, notificationService } from "@todoke/notification/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BusKind, busKinds, serverUrl } from "./buses.ts";

const spans = new InMemorySpanExporter();

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
});
afterAll(() => {
  trace.disable();
  context.disable();
});

const attemptsMax = 3;
const [granted, revoked] = ["EntitlementGranted", "EntitlementRevoked"];

const settings = {
  TODOKE_DEV: "true",
  TODOKE_API_KEYS: `shop=entitlements:write+read=${hash("sha256", "tdk_shop", "hex")}`,
  LOG_LEVEL: "silent",
  ENTITLEMENT_PORT: "0",
  NOTIFICATION_PORT: "0",
  NOTIFICATION_ATTEMPTS_MAX: String(attemptsMax),
  NOTIFICATION_BACKOFF_BASE_MS: "1",
  NOTIFICATION_BACKOFF_CAP_MS: "5",
};

function openBus(kind: BusKind, url: string, namespace: string): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ url, schema: namespace });
    case "nats":
      return openNatsBus({ url, name: "flows", namespace: namespace });
    case "rabbitmq":
      return openRabbitmqBus({ url, name: "flows", namespace: namespace, consumers });
  }
}

/** A bus that loses every first ack, so every event is redelivered. */
function deliverTwice(bus: EventBus): EventBus {
  const twice =
    (handle: Handler): Handler =>
    async (deliveries, stopping) => {
      await handle(deliveries, stopping);
      return handle(
        deliveries.map((delivery) => ({ ...delivery, redelivered: true })),
        stopping,
      );
    };
  return {
    publish: (events) => bus.publish(events),
    subscribe: (subscription) => bus.subscribe({ ...subscription, handle: twice(subscription.handle) }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

/** A bus on which every event fails once when it is published and once when it is handled. */
function failFirst(bus: EventBus): EventBus {
  const seen = new Set<string>();
  const isFirst = (step: "in" | "out", events: readonly Envelope[]) => {
    const unseen = events.map(({ eventId }) => `${eventId} ${step}`).filter((each) => !seen.has(each));
    unseen.forEach((each) => void seen.add(each));
    return unseen.length > 0;
  };
  return {
    publish: async (events) => (isFirst("in", events) ? events.map(() => retry(0, "no ack")) : bus.publish(events)),
    subscribe: (subscription) =>
      bus.subscribe({
        ...subscription,
        async handle(deliveries, stopping) {
          if (isFirst("out", deliveries)) throw new Error("the database is unavailable");
          return subscription.handle(deliveries, stopping);
        },
      }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

interface UserNotification {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: { readonly en: string };
  readonly status: string;
  readonly attempt_count: number;
}

/** Runs both services on one database and one bus; they share nothing else. */
async function openPipeline(kind: BusKind, wrapBus: (bus: EventBus) => EventBus = (bus) => bus) {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await testDatabase({ sets: [] }));
  const namespace = `flow${randomBytes(4).toString("hex")}`;
  const env = { ...settings, DATABASE_URL: t.url };
  const bus = async () => wrapBus(await openBus(kind, serverUrl(kind, t.url), namespace));
  const sender = failingSender();
  const notification = notificationService(() => sender.send);
  await entitlement.migrate(env, { dryRun: false });
  await notification.migrate(env, { dryRun: false });
  const { url } = parts.use(await entitlement.start(env, { openBus: bus }));
  const inboxUrl = parts.use(await notification.start(env, { openBus: bus })).url;

  const callNotification = async (path: string, body?: object) => {
    const posted = body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    };
    return (await (await fetch(inboxUrl + path, posted)).json()) as {
      readonly notifications: readonly UserNotification[];
    };
  };
  const inbox = async () => (await callNotification("/debug/notification/inbox/u_123")).notifications;
  const pipeline = parts.move();
  return {
    db: t.db,
    sender,
    callNotification,
    inbox,
    openBus: bus,
    async post(what: "grants" | "revokes", key: string, sku = "item1") {
      const response = await fetch(`${url}/v1/entitlements/${what}`, {
        method: "POST",
        headers: { authorization: "Bearer tdk_shop", "idempotency-key": key, "content-type": "application/json" },
        body: JSON.stringify({ user_id: "u_123", stock_keeping_unit: sku, reason: "purchase", purchase_id: "p_456" }),
      });
      return {
        status: response.status,
        replayed: response.headers.get("idempotency-replayed"),
        body: await response.text(),
      };
    },
    async waitForNotifications(count: number, status: string): Promise<readonly UserNotification[]> {
      const notifications = async () => (await inbox()).filter((each) => each.status === status).length >= count;
      await until(`${count} notifications are ${status}`, notifications);
      return inbox();
    },
    /** The relay settles an event after the bus stored it; its user may be notified before that. */
    async waitUntilPublished(): Promise<void> {
      const open = `select from entitlement.outbox_events where status <> 'PUBLISHED'`;
      await until("every event is published", async () => (await t.db.query(open)).rowCount === 0);
    },
    [Symbol.asyncDispose]: () => pipeline.disposeAsync(),
  };
}

test.each(busKinds)("%s: a user is notified once of a grant and once of a revoke, newest first", async (kind) => {
  await using pipeline = await openPipeline(kind);
  const response = await pipeline.post("grants", "p_456");
  expect(response.status).toBe(201);
  expect(await pipeline.waitForNotifications(1, "SENT")).toMatchObject([
    { event_type: granted, text: { en: "You can now use item1." }, attempt_count: 1 },
  ]);

  expect(await pipeline.post("grants", "p_456")).toEqual({ ...response, replayed: "true" });
  expect((await pipeline.post("grants", "p_456", "item2")).status).toBe(409);
  // The next notification was published after anything that the replay and the conflict could have caused.
  expect((await pipeline.post("revokes", "refund-of-p_456")).status).toBe(200);
  const notifications = await pipeline.waitForNotifications(2, "SENT");
  expect(notifications.map(({ event_type }) => event_type)).toEqual([revoked, granted]);
  expect(pipeline.sender.attempted).toEqual(notifications.map(({ notification_id }) => notification_id).reverse());
});

test.each(busKinds)("%s: request, command, publish, handling and sending are one trace", async (kind) => {
  spans.reset();
  await using pipeline = await openPipeline(kind);
  await pipeline.post("grants", "p_456");
  await pipeline.waitForNotifications(1, "SENT");
  const names = [
    "POST /v1/entitlements/grants",
    "entitlement command",
    "outbox publish",
    "inbox handle",
    "notification send",
  ];
  const ended = (name: string) => spans.getFinishedSpans().find((span) => span.name === name);
  await until("each step has ended", () => names.every(ended));
  const path = names.map(ended);
  expect(new Set(path.map((span) => span?.spanContext().traceId)).size).toBe(1);
  const ids = path.map((span) => span?.spanContext().spanId);
  expect(path.map((span) => span?.parentSpanContext?.spanId)).toEqual([undefined, ...ids.slice(0, -1)]);
});

test.each(busKinds)("%s: an event that is published and delivered twice makes one notification", async (kind) => {
  await using pipeline = await openPipeline(kind, deliverTwice);
  await pipeline.post("grants", "p_1");
  await pipeline.waitForNotifications(1, "SENT");
  await pipeline.waitUntilPublished();
  // As if the relay had died between the ack of the bus and its own settlement.
  await pipeline.db.query(`update entitlement.outbox_events set status = 'PENDING', published_at = null`);
  await pipeline.waitUntilPublished();
  // Later events were published after both copies.
  for (const [what, key] of [
    ["revokes", "p_2"],
    ["grants", "p_3"],
  ] as const) {
    await pipeline.post(what, key);
    const isNotified = async () => (await pipeline.inbox())[0]?.event_type === (what === "grants" ? granted : revoked);
    await until(`${key} is notified`, isNotified);
  }
  expect((await pipeline.inbox()).map(({ event_type }) => event_type)).toEqual([granted, revoked, granted]);
  await pipeline.waitForNotifications(3, "SENT");
  expect(pipeline.sender.attempted).toHaveLength(3);
});

test.each(busKinds)(
  "%s: a failing notification is retried, then dead-lettered, and a redrive sends it",
  async (kind) => {
    await using pipeline = await openPipeline(kind);
    pipeline.sender.fail(attemptsMax - 1);
    await pipeline.post("grants", "p_1");
    expect(await pipeline.waitForNotifications(1, "SENT")).toMatchObject([{ attempt_count: attemptsMax }]);

    pipeline.sender.fail(Number.POSITIVE_INFINITY);
    await pipeline.post("revokes", "p_2");
    const [failed] = await pipeline.waitForNotifications(1, "FAILED");
    const dlq = await pipeline.callNotification("/debug/notification/dlq");
    expect(dlq.notifications).toMatchObject([
      { notification_id: failed?.notification_id, last_error: expect.stringContaining("the receiver is busy") },
    ]);

    pipeline.sender.fail(0);
    const by = { redriven_by: "aki", reason: "the receiver is fixed" };
    const redrive = `/debug/notification/dlq/${failed?.notification_id}/redrive`;
    expect(await pipeline.callNotification(redrive, by)).toEqual({ redriven: true });
    const [sent] = await pipeline.waitForNotifications(2, "SENT");
    expect(sent).toMatchObject({ notification_id: failed?.notification_id, attempt_count: 1 });
    expect(await pipeline.callNotification(redrive, by)).toEqual({ redriven: false });
    expect((await pipeline.callNotification("/debug/notification/dlq")).notifications).toEqual([]);
  },
);

test.concurrent.each(busKinds)(
  "%s: a failed publish and a failed delivery are retried, with one notification",
  async (kind) => {
    await using pipeline = await openPipeline(kind, failFirst);
    await pipeline.post("grants", "p_1");
    await pipeline.waitForNotifications(1, "SENT");
    await pipeline.waitUntilPublished();
    const published = await pipeline.db.query(
      `select status, attempt_count, last_error from entitlement.outbox_events`,
    );
    expect(published.rows).toEqual([{ status: "PUBLISHED", attempt_count: 2, last_error: null }]);
    expect(pipeline.sender.attempted).toHaveLength(1);
  },
);

test.concurrent.each(busKinds)(
  "%s: an unreadable message is dead-lettered with its bytes, and later events are handled",
  async (kind) => {
    await using pipeline = await openPipeline(kind);
    await using bus = await pipeline.openBus();
    const payload = Buffer.from("no event");
    await bus.publish([delivery(1, { payload })]);
    await pipeline.post("grants", "p_1");
    await pipeline.waitForNotifications(1, "SENT");
    const dead = `select payload, status from notification.inbox_dlq`;
    await until("it is dead-lettered", async () => (await pipeline.db.query(dead)).rowCount === 1);
    expect((await pipeline.db.query(dead)).rows).toEqual([{ payload, status: "DEAD" }]);
    expect((await pipeline.inbox()).length).toBe(1);
  },
);
