/** Tests that need a broker with other settings. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Engine, startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done, retry } from "@todoke/kernel/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createNamespace, recordDeliveries, sampleEvent, sampleEvents, startMs, subject } from "./testing.ts";

const consumers = { listener: [subject] };

describe("a broker with low limits", () => {
  let broker: Engine;
  beforeAll(async () => {
    broker = await startEngine("rabbitmq", { settings: { max_message_size: "50000" } });
  }, startMs);
  afterAll(() => broker[Symbol.asyncDispose](), startMs);

  test("when a channel closes during confirms, only the event that closed it is dead", async () => {
    await using namespace = createNamespace(broker.url);
    const bus = await namespace.open({ consumers });
    const events = sampleEvents(200);
    events[100] = sampleEvent({ payload: Buffer.alloc(60_000) });
    const outcomes = await bus.publish(events);
    expect(outcomes[100]).toEqual({ kind: "dead", reason: "its payload has 60000 bytes; the limit is 50000" });
    const unconfirmed = events.filter((_, n) => outcomes[n]?.kind === "retry");
    expect(unconfirmed.length).toBeGreaterThanOrEqual(99);
    expect(outcomes.filter(({ kind }) => kind === "done").length + unconfirmed.length).toBe(199);

    // Now the limit is known: a large event does not affect the others.
    const secondTime = await bus.publish([...unconfirmed, sampleEvent({ payload: Buffer.alloc(60_000) })]);
    expect(secondTime.map(({ kind }) => kind)).toEqual([...unconfirmed.map(() => "done"), "dead"]);
    const recorded = await recordDeliveries(await namespace.open());
    const deliveries = () => new Set(recorded.deliveries.map(({ eventId }) => eventId));
    await until("every other event arrives", () => deliveries().size === 199);
  });
});

test(
  "a broker that is short of memory blocks publishers, not consumers",
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "todoke-test-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const normal = stack.use(await startEngine("rabbitmq", { dir }));
    let constrained: Engine | undefined;
    stack.defer(() => constrained?.[Symbol.asyncDispose]());
    const namespace = stack.use(createNamespace(normal.url));
    const bus = await namespace.open({ consumers, newQueueDelayMs: 1_500, publishTimeoutMs: 5_000 });
    const events = sampleEvents(5);
    expect(await bus.publish(events)).toEqual(events.map(() => done));

    await normal.kill();
    const settings = { "vm_memory_high_watermark.absolute": "1MB" };
    constrained = await startEngine("rabbitmq", { dir, settings, port: Number(new URL(normal.url).port) });
    const refusal = () =>
      bus.publish([sampleEvent({ eventType: "Probe" })]).then(
        () => "",
        (error: Error) => error.message,
      );
    // The broker blocks a connection only once it publishes; it may still store what it has read before.
    await until("publishing is refused", async () => (await refusal()).includes("low on memory"));
    const recorded = await recordDeliveries(await namespace.open(), ({ eventType, redelivered }) =>
      eventType === "Probe" || redelivered ? done : retry(10, "it cannot be delayed now"),
    );
    const timesHeard = (eventId: string) =>
      recorded.deliveries.filter((delivery) => delivery.eventId === eventId).length;
    await until("all are delivered and redelivered", () => events.every(({ eventId }) => timesHeard(eventId) >= 2));
  },
  2 * startMs,
);
