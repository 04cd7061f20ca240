import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, Handle } from "@todoke/kernel/bus";
import { openInbox } from "@todoke/kernel/inbox";
import { relay } from "@todoke/kernel/outbox";
import { dead, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { busKinds, consumer, subject } from "./buses.ts";
import { createHarness, versionsByAggregate } from "./harness.ts";

/** A broker connection on a bad day: publishes fail, are slow, or succeed and say that they did not. */
function unreliable(bus: EventBus): Pick<EventBus, "publish"> {
  return {
    async publish(events) {
      await sleep(Math.random() * 5);
      const kept = events.filter(() => Math.random() > 0.2);
      const outcomes = await bus.publish(kept);
      return events.map((event) => {
        const outcome = outcomes[kept.indexOf(event)] ?? retry(0, "it was never sent");
        return Math.random() < 0.2 ? retry(0, "the answer was lost") : outcome;
      });
    },
  };
}

test.each(busKinds)(
  "%s: with four relays and failures, events of an aggregate arrive in the order of their versions and take effect once",
  async (kind) => {
    await using stage = await createHarness(kind);
    await using bus = await stage.openBus();
    const inbox = openInbox<{ id: string }>({
      db: stage.db,
      consumer,
      read: (event) => ({ id: event.eventId }),
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
    const handle: Handle = (deliveries, stopping) => {
      for (const { eventId, aggregateKey, payload } of deliveries) {
        const { n } = JSON.parse(new TextDecoder().decode(payload));
        const first = { aggregate_key: aggregateKey, version: BigInt(Math.floor(n / 10) + 1) };
        if (!arrived.has(eventId)) arrived.set(eventId, first);
      }
      return inbox.handle(deliveries, stopping);
    };
    await using _ = await bus.subscribe({ consumer, subjects: [subject], handle });
    const relays = Array.from({ length: 4 }, () =>
      relay({
        db: stage.pool(),
        bus: unreliable(bus),
        settings: { batchMax: 7, concurrency: 14, pollMs: 20, attemptsMax: 1_000, backoff: { baseMs: 5, capMs: 20 } },
      }),
    );
    await using running = new AsyncDisposableStack();
    for (const each of relays) running.use(each).start();
    await stage.append(400, 10);
    await stage.untilPublished();
    await expect.poll(async () => (await stage.effects()).length).toBe(400);
    const inOrder = Array.from({ length: 40 }, (_, n) => n + 1);
    for (const versions of versionsByAggregate([...arrived.values()]).values()) expect(versions).toEqual(inOrder);
    // Should the consumer's database have failed for a moment, only this bus keeps the order through the second try.
    if (kind !== "postgres") return;
    for (const versions of versionsByAggregate(await stage.effects()).values()) expect(versions).toEqual(inOrder);
  },
);

test.each(busKinds)("%s: a poison event parks its aggregate while the others go on", async (kind) => {
  await using stage = await createHarness(kind);
  await using bus = await stage.openBus();
  const refusing: Pick<EventBus, "publish"> = {
    async publish(events) {
      const refused = events.filter((event) => event.aggregateKey === "aggregate-3");
      const taken = await bus.publish(events.filter((event) => !refused.includes(event)));
      return events.map((event) => (refused.includes(event) ? dead("refused for good") : (taken[0] ?? dead("?"))));
    },
  };
  await using subscribed = await bus.subscribe({
    consumer,
    subjects: [subject],
    handle: async (all) => all.map(() => ({ kind: "done" })),
  });
  expect(subscribed).toBeDefined();
  await stage.append(50, 5);
  await using publishing = relay({ db: stage.pool(), bus: refusing, settings: { pollMs: 20 } });
  publishing.start();
  const counts = async () =>
    (await stage.db.query(`select status, count(*)::int from outbox_events group by status order by status`)).rows;
  await expect.poll(counts).toEqual([
    { status: "FAILED", count: 1 },
    { status: "PENDING", count: 9 },
    { status: "PUBLISHED", count: 40 },
  ]);
});
