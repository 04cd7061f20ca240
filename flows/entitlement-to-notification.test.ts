/** The main road, end to end: from a grant over HTTP to what its user was told, on every bus (seed 001's sequence). */
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
import { type BusKind, busKinds, serverOf } from "./buses.ts";

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

function openBus(kind: BusKind, url: string, place: string): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ url, schema: place });
    case "nats":
      return openNatsBus({ url, name: "flows", namespace: place });
    case "rabbitmq":
      return openRabbitmqBus({ url, name: "flows", namespace: place, consumers });
  }
}

/** A bus that loses every first answer: what was handled comes once more. */
function deliversTwice(bus: EventBus): EventBus {
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
    subscribe: (wish) => bus.subscribe({ ...wish, handle: twice(wish.handle) }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

/** A bus on which every event fails once on its way in, and once on its way out. */
function failsFirst(bus: EventBus): EventBus {
  const seen = new Set<string>();
  const isFirst = (step: "in" | "out", events: readonly Envelope[]) => {
    const news = events.map(({ eventId }) => `${eventId} ${step}`).filter((each) => !seen.has(each));
    news.forEach((each) => void seen.add(each));
    return news.length > 0;
  };
  return {
    publish: async (events) =>
      isFirst("in", events) ? events.map(() => retry(0, "the bus did not say")) : bus.publish(events),
    subscribe: (wish) =>
      bus.subscribe({
        ...wish,
        async handle(deliveries, stopping) {
          if (isFirst("out", deliveries)) throw new Error("the database is away");
          return wish.handle(deliveries, stopping);
        },
      }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

interface Told {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: { readonly en: string };
  readonly status: string;
  readonly attempt_count: number;
}

/** Both services at work on one database and one bus, as two processes would be: they share nothing else. */
async function openRoad(kind: BusKind, through: (bus: EventBus) => EventBus = (bus) => bus) {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await testDatabase({ sets: [] }));
  const place = `road${randomBytes(4).toString("hex")}`;
  const env = { ...settings, DATABASE_URL: t.url };
  const bus = async () => through(await openBus(kind, serverOf(kind, t.url), place));
  const sender = failingSender();
  const notification = notificationService(() => sender.send);
  await entitlement.migrate(env, { dryRun: false });
  await notification.migrate(env, { dryRun: false });
  const { url } = parts.use(await entitlement.start(env, { openBus: bus }));
  const inboxUrl = parts.use(await notification.start(env, { openBus: bus })).url;

  const ask = async (path: string, body?: object) => {
    const posted = body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    };
    return (await (await fetch(inboxUrl + path, posted)).json()) as { readonly notifications: readonly Told[] };
  };
  const inbox = async () => (await ask("/debug/notification/inbox/u_123")).notifications;
  const road = parts.move();
  return {
    db: t.db,
    sender,
    ask,
    inbox,
    openBus: bus,
    async post(what: "grants" | "revokes", key: string, sku = "item1") {
      const answer = await fetch(`${url}/v1/entitlements/${what}`, {
        method: "POST",
        headers: { authorization: "Bearer tdk_shop", "idempotency-key": key, "content-type": "application/json" },
        body: JSON.stringify({ user_id: "u_123", stock_keeping_unit: sku, reason: "purchase", purchase_id: "p_456" }),
      });
      return { status: answer.status, replayed: answer.headers.get("idempotency-replayed"), body: await answer.text() };
    },
    async untilTold(count: number, status: string): Promise<readonly Told[]> {
      const told = async () => (await inbox()).filter((each) => each.status === status).length >= count;
      await until(`${count} notifications are ${status}`, told);
      return inbox();
    },
    /** The relay writes down that an event is published once the bus has it; its user may have been told by then. */
    async untilPublished(): Promise<void> {
      const open = `select from entitlement.outbox_events where status <> 'PUBLISHED'`;
      await until("every event is published", async () => (await t.db.query(open)).rowCount === 0);
    },
    [Symbol.asyncDispose]: () => road.disposeAsync(),
  };
}

test.each(busKinds)("%s: a grant and a revoke are told to their user, once each, newest first", async (kind) => {
  await using road = await openRoad(kind);
  const answer = await road.post("grants", "p_456");
  expect(answer.status).toBe(201);
  expect(await road.untilTold(1, "SENT")).toMatchObject([
    { event_type: granted, text: { en: "You can now use item1." }, attempt_count: 1 },
  ]);

  expect(await road.post("grants", "p_456")).toEqual({ ...answer, replayed: "true" });
  expect((await road.post("grants", "p_456", "item2")).status).toBe(409);
  // What is told next was published after whatever the replay and the refusal could have caused.
  expect((await road.post("revokes", "refund-of-p_456")).status).toBe(200);
  const told = await road.untilTold(2, "SENT");
  expect(told.map(({ event_type }) => event_type)).toEqual([revoked, granted]);
  expect(road.sender.attempted).toEqual(told.map(({ notification_id }) => notification_id).reverse());
});

test.each(busKinds)(
  "%s: from the request to the sending it is one trace, each the child of the one before",
  async (kind) => {
    spans.reset();
    await using road = await openRoad(kind);
    await road.post("grants", "p_456");
    await road.untilTold(1, "SENT");
    const names = [
      "POST /v1/entitlements/grants",
      "entitlement command",
      "outbox publish",
      "inbox handle",
      "notification send",
    ];
    const ended = (name: string) => spans.getFinishedSpans().find((span) => span.name === name);
    await until("each step has ended", () => names.every(ended));
    const way = names.map(ended);
    expect(new Set(way.map((span) => span?.spanContext().traceId)).size).toBe(1);
    const ids = way.map((span) => span?.spanContext().spanId);
    expect(way.map((span) => span?.parentSpanContext?.spanId)).toEqual([undefined, ...ids.slice(0, -1)]);
  },
);

test.each(busKinds)("%s: an event that is published twice and delivered twice is told once", async (kind) => {
  await using road = await openRoad(kind, deliversTwice);
  await road.post("grants", "p_1");
  await road.untilTold(1, "SENT");
  await road.untilPublished();
  // As if the relay had died between the bus' "stored" and its own settlement.
  await road.db.query(`update entitlement.outbox_events set status = 'PENDING', published_at = null`);
  await road.untilPublished();
  // What comes after an event has come twice was published after both copies of it.
  for (const [what, key] of [
    ["revokes", "p_2"],
    ["grants", "p_3"],
  ] as const) {
    await road.post(what, key);
    const isTold = async () => (await road.inbox())[0]?.event_type === (what === "grants" ? granted : revoked);
    await until(`${key} is told`, isTold);
  }
  expect((await road.inbox()).map(({ event_type }) => event_type)).toEqual([granted, revoked, granted]);
  await road.untilTold(3, "SENT");
  expect(road.sender.attempted).toHaveLength(3);
});

test.each(busKinds)(
  "%s: a receiver that fails is tried again; past the last try the notification is put away, and a redrive sends it",
  async (kind) => {
    await using road = await openRoad(kind);
    road.sender.fail(attemptsMax - 1);
    await road.post("grants", "p_1");
    expect(await road.untilTold(1, "SENT")).toMatchObject([{ attempt_count: attemptsMax }]);

    road.sender.fail(Number.POSITIVE_INFINITY);
    await road.post("revokes", "p_2");
    const [failed] = await road.untilTold(1, "FAILED");
    const dlq = await road.ask("/debug/notification/dlq");
    expect(dlq.notifications).toMatchObject([
      { notification_id: failed?.notification_id, last_error: expect.stringContaining("the receiver is busy") },
    ]);

    road.sender.fail(0);
    const by = { redriven_by: "aki", reason: "the receiver is mended" };
    const redrive = `/debug/notification/dlq/${failed?.notification_id}/redrive`;
    expect(await road.ask(redrive, by)).toEqual({ redriven: true });
    const [sent] = await road.untilTold(2, "SENT");
    expect(sent).toMatchObject({ notification_id: failed?.notification_id, attempt_count: 1 });
    expect(await road.ask(redrive, by)).toEqual({ redriven: false });
    expect((await road.ask("/debug/notification/dlq")).notifications).toEqual([]);
  },
);

test.concurrent.each(busKinds)(
  "%s: a publication that fails, and a delivery that fails, are tried again, and the event is told once",
  async (kind) => {
    await using road = await openRoad(kind, failsFirst);
    await road.post("grants", "p_1");
    await road.untilTold(1, "SENT");
    await road.untilPublished();
    const published = await road.db.query(`select status, attempt_count, last_error from entitlement.outbox_events`);
    expect(published.rows).toEqual([{ status: "PUBLISHED", attempt_count: 2, last_error: "the bus did not say" }]);
    expect(road.sender.attempted).toHaveLength(1);
  },
);

test.concurrent.each(busKinds)(
  "%s: a message that cannot be read is put away with its bytes, and what comes after it is told",
  async (kind) => {
    await using road = await openRoad(kind);
    await using bus = await road.openBus();
    const payload = Buffer.from("no event");
    await bus.publish([delivery(1, { payload })]);
    await road.post("grants", "p_1");
    await road.untilTold(1, "SENT");
    const dead = `select payload, status from notification.inbox_dlq`;
    await until("it is put away", async () => (await road.db.query(dead)).rowCount === 1);
    expect((await road.db.query(dead)).rows).toEqual([{ payload, status: "DEAD" }]);
    expect((await road.inbox()).length).toBe(1);
  },
);
