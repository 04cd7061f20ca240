import type { Delivery, EventBus } from "@todoke/kernel/bus";
import { openFaultProxy } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { createHarness, recordDeliveries, sampleEvent, sharedServer } from "./testing.ts";

const server = sharedServer();

/** Waits by the server's clock: for an event that is delayed once. */
async function waitOnServer(bus: EventBus, ms: number): Promise<void> {
  const ticks: Delivery[] = [];
  await bus.publish([sampleEvent({ subject: "clock.ticks" })]);
  await recordDeliveries(bus, {
    consumer: "clock",
    subjects: ["clock.ticks"],
    handle: async (deliveries) => {
      ticks.push(...deliveries);
      return deliveries.map(({ redelivered }) => (redelivered ? done : retry(ms, "waiting")));
    },
  });
  await until(`${ms} ms have passed`, () => ticks.length === 2);
}

test("a consumer that adds a subject gets its history too", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  const [subscribed, added] = [sampleEvent(), sampleEvent({ subject: "things.reservations" })];
  await bus.publish([subscribed, added]);
  const before = await recordDeliveries(bus);
  await until("the event of one subject is received", () => before.length === 1);
  const after = await recordDeliveries(bus, { subjects: ["things.events", "things.reservations"] });
  await until("both are received", () => after.length === 2);
  expect(after.map(({ eventId }) => eventId)).toEqual([subscribed.eventId, added.eventId]);
});

test("messages of other subjects are acked and not delivered", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  const received = await recordDeliveries(bus, { subjects: ["things.a", "things.b"] });
  const subjects = ["things.a", "things.c", "things.b", "things.c", "things.a"];
  await bus.publish(subjects.map((subject) => sampleEvent({ subject })));
  await until("three are received", () => received.length === 3);
  expect(received.map(({ subject }) => subject)).toEqual(["things.a", "things.b", "things.a"]);
  const info = () => harness.manager.consumers.info(harness.stream, "listener=a=b");
  await until("all are acked", async () => (await info()).num_ack_pending === 0 && (await info()).num_pending === 0);
});

test("a changed ack wait takes effect for an existing consumer", async () => {
  await using harness = await createHarness(server);
  await recordDeliveries(await harness.open({ ackWaitMs: 60_000 }));
  await recordDeliveries(await harness.open({ ackWaitMs: 2_000, ackPendingMax: 77 }));
  const { config } = await harness.manager.consumers.info(harness.stream, "listener=events");
  expect(config).toMatchObject({ ack_wait: 2_000_000_000, max_ack_pending: 77, max_deliver: -1 });
});

test("a message without an outcome is redelivered", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  const received: boolean[] = [];
  await bus.publish([sampleEvent()]);
  await recordDeliveries(bus, {
    handle: async (deliveries) => {
      received.push(...deliveries.map(({ redelivered }) => redelivered));
      return received.length === 1 ? [] : deliveries.map(() => done);
    },
  });
  await until("it is redelivered", () => received.length === 2);
  expect(received).toEqual([false, true]);
});

test("the bytes in flight of a process are bounded, also for large batches", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open({ publishTimeoutMs: 60_000 });
  const events = Array.from({ length: 60 }, () => sampleEvent({ payload: new Uint8Array(900_000) }));
  await bus.publish(events);
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  let received = 0;
  await recordDeliveries(bus, {
    handle: async (deliveries) => {
      received += deliveries.length;
      await finished;
      return deliveries.map(() => done);
    },
  });
  const info = () => harness.manager.consumers.info(harness.stream, "listener=events");
  await until("it has received all that it requested", async () => received > 0 && (await info()).num_waiting === 0);
  await waitOnServer(bus, 500);
  const { num_ack_pending, num_waiting } = await info();
  expect(num_ack_pending).toBeLessThan(40);
  expect(num_waiting).toBe(0);
  finish();
  await until("all are received", () => received === 60);
});

test("a subscription continues after its connection was lost", async () => {
  await using harness = await createHarness(server);
  await using wire = await openFaultProxy(server.url);
  const received = await recordDeliveries(await harness.open({ url: wire.url, ackWaitMs: 1_000 }));
  const publisher = await harness.open();
  for (const round of [1, 2, 3]) {
    wire.closeConnections();
    await publisher.publish([sampleEvent()]);
    await until(`event ${round} is received`, () => received.length >= round);
  }
});

test("a subscription continues after a message of the server was lost", async () => {
  await using harness = await createHarness(server);
  await using wire = await openFaultProxy(server.url);
  const received = await recordDeliveries(await harness.open({ url: wire.url, ackWaitMs: 2_000 }));
  wire.dropResponses();
  const publisher = await harness.open();
  await publisher.publish([sampleEvent()]);
  const pending = async () => (await harness.manager.consumers.info(harness.stream, "listener=events")).num_ack_pending;
  await until("it was sent and not received", async () => (await pending()) === 1);
  await until("the request has expired", async () => (await waiting()) === 0);
  wire.stopDropping();
  await until("it is received", () => received.length >= 1);

  async function waiting() {
    return (await harness.manager.consumers.info(harness.stream, "listener=events")).num_waiting;
  }
});

test("subscribing to an invalid subject is rejected", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  await expect(recordDeliveries(bus, { subjects: ["nowhere"] })).rejects.toThrow("must be a service in lower case");
  await expect(recordDeliveries(bus, { consumer: "no.dots" })).rejects.toThrow("must be 1 to 64 letters");
});

test("what was published for a consumer that has never subscribed waits; of other subjects nothing does", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  expect(await bus.readLag?.("new", ["things.events"])).toMatchObject({ waiting: 0 });
  await bus.publish([sampleEvent()]);
  expect(await bus.readLag?.("new", ["things.events"])).toMatchObject({ waiting: 1 });
  expect(await bus.readLag?.("new", ["things.others"])).toMatchObject({ waiting: 0 });
});
