import { DiscardPolicy, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { createHarness, recordDeliveries, sampleEvent, sharedServer } from "./testing.ts";

const server = sharedServer();

/** With this status a repair is fast. Without a response ("nothing") it takes as long as a request. */
const consumerDeleted = /answered "409 Consumer Deleted"; checking that it exists$/;

test("a new stream keeps all events", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  await bus.publish([sampleEvent()]);
  const { config } = await harness.manager.streams.info(harness.stream);
  expect(config).toMatchObject({
    subjects: [`${harness.namespace}.things.>`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_age: nanos(7 * 86_400_000),
    duplicate_window: nanos(600_000),
    deny_delete: true,
    deny_purge: true,
  });
  expect(await bus.check()).toMatchObject({ engine: expect.stringMatching(/^nats-server \d/), warnings: [] });
});

test("processes with different settings can create a stream at the same time", async () => {
  await using harness = await createHarness(server);
  const days = (n: number) => ({ streams: { maxAgeMs: n * 86_400_000 } });
  const processes = await Promise.all(Array.from({ length: 8 }, (_, n) => harness.open(days(7 + (n % 4)))));
  const outcomes = await Promise.all(processes.map((bus) => bus.publish([sampleEvent()])));
  await Promise.all(processes.map((bus) => recordDeliveries(bus)));
  expect(outcomes.flat()).toEqual(Array(8).fill(done));
});

test("an existing stream is not changed, and check warns about each difference", async () => {
  await using harness = await createHarness(server);
  const weak = {
    name: harness.stream,
    subjects: [`${harness.namespace}.things.>`],
    storage: StorageType.Memory,
    retention: RetentionPolicy.Interest,
    discard: DiscardPolicy.Old,
    max_age: nanos(3_600_000),
    duplicate_window: nanos(120_000),
    max_msgs_per_subject: 5,
  };
  await harness.manager.streams.add({ ...weak });
  const bus = await harness.open({ streams: { replicas: 3 } });
  await recordDeliveries(bus);
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  const { config } = await harness.manager.streams.info(harness.stream);
  expect(config).toMatchObject(weak);
  const { warnings } = await bus.check();
  for (const cost of [
    "in memory",
    "once they are read",
    "unread events",
    "sooner",
    "duplicates",
    "per subject",
    "fewer copies",
    "delete",
    "purged",
  ]) {
    expect(warnings).toContainEqual(expect.stringMatching(new RegExp(`^The stream ${harness.stream} .*${cost}.*\\.$`)));
  }
  expect(warnings).toHaveLength(9);
});

test("a full stream refuses events and keeps unread ones", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open({ streams: { maxBytes: 4_000 } });
  const large = () => sampleEvent({ payload: new Uint8Array(1_500) });
  const outcomes = [
    ...(await bus.publish([large()])),
    ...(await bus.publish([large()])),
    ...(await bus.publish([large()])),
  ];
  expect(outcomes).toMatchObject([
    done,
    done,
    { kind: "release", reason: expect.stringContaining("maximum bytes exceeded") },
  ]);
  const received = await recordDeliveries(bus);
  await until("both are received", () => received.length === 2);
});

test("after its stream is deleted, a running service creates it again and continues", async () => {
  await using harness = await createHarness(server);
  const logged: string[] = [];
  const bus = await harness.open({ log: (message) => logged.push(message) });
  const received = await recordDeliveries(bus);
  await bus.publish([sampleEvent()]);
  await until("it runs", () => received.length === 1);
  await harness.manager.streams.delete(harness.stream);
  const event = sampleEvent();
  await until("it is stored", async () => (await bus.publish([event]))[0]?.kind === "done");
  await until("it is received", () => received.some(({ eventId }) => eventId === event.eventId));
  expect(logged).toContainEqual(expect.stringMatching(consumerDeleted));
});

test("a deleted consumer is created again and misses nothing", async () => {
  await using harness = await createHarness(server);
  const logged: string[] = [];
  const bus = await harness.open({ log: (message) => logged.push(message) });
  const received = await recordDeliveries(bus);
  const info = () => harness.manager.consumers.info(harness.stream, "listener=events");
  await until("it waits for events", async () => (await info()).num_waiting === 1);
  await harness.manager.consumers.delete(harness.stream, "listener=events");
  const event = sampleEvent();
  await bus.publish([event]);
  await until("it is received", () => received.some(({ eventId }) => eventId === event.eventId));
  expect(logged).toContainEqual(expect.stringMatching(consumerDeleted));
});
