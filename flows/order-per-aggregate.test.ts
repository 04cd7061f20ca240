import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, Handler } from "@todoke/kernel/bus";
import { openInbox } from "@todoke/kernel/inbox";
import { createRelay } from "@todoke/kernel/outbox";
import { dead, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { busKinds, consumer, subject } from "./buses.ts";
import { createHarness, versionsByAggregate } from "./harness.ts";

/** Publishes fail, are slow, or succeed although they report a failure. */
function flaky(bus: EventBus): Pick<EventBus, "publish"> {
  return {
    async publish(events) {
      await sleep(Math.random() * 5);
      const kept = events.filter(() => Math.random() > 0.2);
      const outcomes = await bus.publish(kept);
      return events.map((event) => {
        const outcome = outcomes[kept.indexOf(event)] ?? retry(0, "not sent");
        return Math.random() < 0.2 ? retry(0, "the ack was lost") : outcome;
      });
    },
  };
}

test.each(busKinds)(
  "%s: four relays with failures deliver an aggregate's events in order, each with one effect",
  async (kind) => {
    await using harness = await createHarness(kind);
    await using bus = await harness.openBus();
    const inbox = openInbox<{ id: string }>({
      db: harness.db,
      consumer,
      decode: (event) => ({ id: event.eventId }),
      effect: async (tx, events) => {
        for (const { id } of events) {
          await tx.query(
            `insert into effects (event_id, aggregate_key, version)
                        select event_id, aggregate_key, version from outbox_events where event_id = $1`,
            [id],
          );
        }
      },
    });
    const arrived = new Map<string, { aggregate_key: string; version: bigint }>();
    const handle: Handler = (deliveries, stopping) => {
      for (const { eventId, aggregateKey, payload } of deliveries) {
        const { n } = JSON.parse(new TextDecoder().decode(payload));
        const first = { aggregate_key: aggregateKey, version: BigInt(Math.floor(n / 10) + 1) };
        if (!arrived.has(eventId)) arrived.set(eventId, first);
      }
      return inbox.handle(deliveries, stopping);
    };
    await using _ = await bus.subscribe({ consumer, subjects: [subject], handle });
    const relays = Array.from({ length: 4 }, () =>
      createRelay({
        db: harness.pool(),
        bus: flaky(bus),
        settings: { batchMax: 7, concurrency: 14, pollMs: 20, attemptsMax: 1_000, backoff: { baseMs: 5, capMs: 20 } },
      }),
    );
    await using running = new AsyncDisposableStack();
    for (const each of relays) running.use(each).start();
    await harness.append(400, 10);
    await harness.untilPublished();
    await expect.poll(async () => (await harness.effects()).length).toBe(400);
    const inOrder = Array.from({ length: 40 }, (_, n) => n + 1);
    for (const versions of versionsByAggregate([...arrived.values()]).values()) expect(versions).toEqual(inOrder);
    // If a consumer's transaction failed once, only the PostgreSQL bus keeps the order on redelivery.
    if (kind !== "postgres") return;
    for (const versions of versionsByAggregate(await harness.effects()).values()) expect(versions).toEqual(inOrder);
  },
);

test.each(busKinds)("%s: a poison event parks its aggregate while the others go on", async (kind) => {
  await using harness = await createHarness(kind);
  await using bus = await harness.openBus();
  const rejectingBus: Pick<EventBus, "publish"> = {
    async publish(events) {
      const rejected = events.filter((event) => event.aggregateKey === "aggregate-3");
      const taken = await bus.publish(events.filter((event) => !rejected.includes(event)));
      return events.map((event) => (rejected.includes(event) ? dead("rejected permanently") : (taken[0] ?? dead("?"))));
    },
  };
  await using subscribed = await bus.subscribe({
    consumer,
    subjects: [subject],
    handle: async (all) => all.map(() => ({ kind: "done" })),
  });
  expect(subscribed).toBeDefined();
  await harness.append(50, 5);
  await using relay = createRelay({ db: harness.pool(), bus: rejectingBus, settings: { pollMs: 20 } });
  relay.start();
  const counts = async () =>
    (await harness.db.query(`select status, count(*)::int from outbox_events group by status order by status`)).rows;
  await expect.poll(counts).toEqual([
    { status: "FAILED", count: 1 },
    { status: "PENDING", count: 9 },
    { status: "PUBLISHED", count: 40 },
  ]);
});
