import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { openFaultProxy } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done, release, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import {
  createNamespace,
  declareQueue,
  openFrameProxy,
  type RecordingConsumer,
  recordDeliveries,
  sampleEvent,
  sampleEvents,
  sharedBroker,
  subject,
  withChannel,
} from "./testing.ts";

const broker = sharedBroker();

test("an event requeued past the delivery limit is not lost, and check warns of the limit", async () => {
  await using namespace = createNamespace(broker.url);
  const queue = namespace.queueName("listener");
  const args = { "x-queue-type": "quorum", "x-delivery-limit": 15, "x-overflow": "reject-publish" };
  await declareQueue(broker.url, queue, args);
  const bus = await namespace.open();
  let count = 0;
  const recorded = await recordDeliveries(bus, () => (++count <= 40 ? release("not now") : done));
  await bus.publish([sampleEvent()]);
  await until("it is delivered 41 times", () => recorded.deliveries.length === 41);
  expect(recorded.deliveries.map(({ redelivered }) => redelivered)).toEqual(recorded.deliveries.map((_, n) => n > 0));
  expect(new Set(recorded.deliveries.map((delivery) => delivery.subject))).toEqual(new Set([subject]));
  const { warnings } = await bus.check();
  expect(warnings).toEqual([
    expect.stringMatching(/listener has other settings .* inequivalent arg 'x-delivery-limit'/),
  ]);
});

test("a long retry does not block a short one behind it", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open();
  const [long, short] = [sampleEvent({ eventType: "Long" }), sampleEvent({ eventType: "Short" })];
  const recorded = await recordDeliveries(bus, ({ eventType, redelivered }) =>
    redelivered ? done : retry(eventType === "Long" ? 3_600_000 : 50, "later"),
  );
  await bus.publish([long]);
  await until("the long one waits", () => recorded.deliveries.length === 1);
  await bus.publish([short]);
  await until("the short one is redelivered", () => recorded.deliveries.length === 3);
  expect(recorded.deliveries.map(({ eventType }) => eventType)).toEqual(["Long", "Short", "Short"]);
});

test("a delay longer than the longest step takes several steps and is not shortened", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open({ delayStepsMs: [100] });
  const times: number[] = [];
  const recorded = await recordDeliveries(bus, ({ redelivered }) => {
    times.push(performance.now());
    return redelivered ? done : retry(350, "later");
  });
  const event = sampleEvent({ headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } });
  await bus.publish([event]);
  await until("it is redelivered", () => times.length === 2);
  const [sent = 0, back = 0] = times;
  expect(back - sent).toBeGreaterThanOrEqual(350);
  const { redelivered, ...received } = recorded.deliveries[1] ?? expect.fail("it is not there");
  expect(redelivered).toBe(true);
  expect(received).toEqual(event);
});

test("a retry is redelivered also if no retry queue takes it", async () => {
  await using namespace = createNamespace(broker.url);
  // A queue of that name exists that would drop the messages in it.
  const queue = `${namespace.queueName("listener")}.retry.100ms`;
  const args = { "x-queue-type": "quorum", "x-message-ttl": 100 };
  await declareQueue(broker.url, queue, args);
  const bus = await namespace.open();
  const recorded = await recordDeliveries(bus, ({ redelivered }) => (redelivered ? done : retry(80, "later")));
  await bus.publish(sampleEvents(3));
  await until("all three are redelivered", () => recorded.deliveries.length === 6);
  expect((await bus.check()).warnings).toEqual([expect.stringContaining(`${queue} is not used for retries`)]);
});

test("a deleted retry queue is declared again and loses no retry", async () => {
  await using namespace = createNamespace(broker.url);
  const queue = `${namespace.queueName("listener")}.retry.100ms`;
  const bus = await namespace.open();
  const recorded = await recordDeliveries(bus, ({ redelivered }) => (redelivered ? done : retry(80, "later")));
  await bus.publish([sampleEvent()]);
  await until("the first is redelivered", () => recorded.deliveries.length === 2);
  await withChannel(broker.url, (channel) => channel.queueDelete({ queue }));
  await bus.publish([sampleEvent()]);
  await until("the second is redelivered", () => recorded.deliveries.length === 4);
  await bus.publish([sampleEvent()]);
  await until("the third is redelivered", () => recorded.deliveries.length === 6);
  // The broker removes a message there once the consumer's queue has it.
  await until("the retry queue is empty", async () => (await namespace.countMessages(queue)) === 0);
});

test("a consumer declares its deleted queue again and continues", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open();
  const recorded = await recordDeliveries(bus);
  await bus.publish([sampleEvent()]);
  await until("the first is delivered", () => recorded.deliveries.length === 1);
  await withChannel(broker.url, (channel) => channel.queueDelete({ queue: namespace.queueName("listener") }));
  await until("an event is stored again", async () => (await bus.publish([sampleEvent()]))[0]?.kind === "done");
  await until("it is delivered", () => recorded.deliveries.length >= 2);
});

test("an ack after a lost connection is dropped, and the event is redelivered", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFaultProxy(broker.url);
  const logged: string[] = [];
  const bus = await namespace.open({ url: wire.url, log: (message) => logged.push(message) });
  const late = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  const recorded = await recordDeliveries(bus, async ({ redelivered }) => {
    most = Math.max(most, ++running);
    if (!redelivered) await late.promise;
    running -= 1;
    return done;
  });
  const publisher = await namespace.open();
  await publisher.publish([sampleEvent()]);
  await until("it is being handled", () => recorded.deliveries.length === 1);
  wire.closeConnections();
  await until("the process has noticed", () => logged.some((message) => message.includes("stopped delivering")));
  const clock: RecordingConsumer[] = [];
  // Subscribing fails until there is a connection again. The consumer count of the queue does not tell, because the broker
  // counts the old consumer until it notices the lost connection.
  await until("it is reconnected", async () => {
    const listening = recordDeliveries(bus, () => done, { consumer: "clock", subjects: ["clock.events"] });
    clock.push(...(await listening.then((recorded) => [recorded]).catch(() => [])));
    return clock.length === 1;
  });
  const queue = namespace.queueName("listener");
  const isInFlight = async () => {
    const { consumerCount, messageCount } = await namespace.inspect(queue);
    return consumerCount === 1 && messageCount === 0;
  };
  await until("the event is in flight again", isInFlight);
  // Once another consumer of this process gets an event, this one has arrived too.
  await publisher.publish([sampleEvent({ subject: "clock.events" })]);
  await until("the clock event is delivered", () => clock[0]?.deliveries.length === 1);
  late.resolve();
  await until("it is handled again", () => recorded.deliveries.length === 2);
  // With concurrency 1 the new channel waits for the handler of the old one.
  expect(most).toBe(1);
});

test("no handler starts after close was called, also if the broker is slow to cancel", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFrameProxy(broker.url);
  const bus = await namespace.open({ url: wire.url });
  let started = 0;
  const subscription = await bus.subscribe({
    consumer: "listener",
    subjects: [subject],
    batchMax: 1,
    handle: async (deliveries, stopping) => {
      started += 1;
      if (!stopping.aborted) await once(stopping, "abort");
      return deliveries.map(() => done);
    },
  });
  await bus.publish(sampleEvents(2));
  const queue = namespace.queueName("listener");
  await until(
    "one is being handled and the other waits here",
    async () => started === 1 && (await namespace.countMessages(queue)) === 0,
  );
  wire.hold();
  const closing = subscription[Symbol.asyncDispose]();
  for (let turns = 0; turns < 10; turns++) await turn();
  wire.release();
  await closing;
  expect(started).toBe(1);
  await until("the other is requeued", async () => (await namespace.countMessages(queue)) === 1);
});

test("deliveries without an outcome are redelivered", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open({ retryMs: 50 });
  const times = new Map<string, number>();
  await bus.subscribe({
    consumer: "listener",
    subjects: [subject],
    handle: async (deliveries) => {
      for (const { eventId } of deliveries) times.set(eventId, (times.get(eventId) ?? 0) + 1);
      return deliveries.every(({ redelivered }) => redelivered) ? deliveries.map(() => done) : [];
    },
  });
  await bus.publish(sampleEvents(3));
  await until("all three are delivered twice", () => [...times.values()].filter((n) => n >= 2).length === 3);
});

test("an existing classic queue is used, with a warning", async () => {
  await using namespace = createNamespace(broker.url);
  const queue = namespace.queueName("listener");
  await declareQueue(broker.url, queue);
  const logged: string[] = [];
  const bus = await namespace.open({ log: (message) => logged.push(message) });
  const recorded = await recordDeliveries(bus, ({ redelivered }) => (redelivered ? done : retry(20, "later")));
  await bus.publish([sampleEvent()]);
  await until("it is redelivered", () => recorded.deliveries.length === 2);
  const { warnings } = await bus.check();
  expect(warnings).toEqual([expect.stringContaining("listener has other settings than Todoke gives it")]);
  expect(logged).toEqual(warnings);
});

test("an existing stream is rejected, because it never removes an event", async () => {
  await using namespace = createNamespace(broker.url);
  const queue = namespace.queueName("listener");
  const args = { "x-queue-type": "stream" };
  await declareQueue(broker.url, queue, args);
  const bus = await namespace.open();
  await expect(recordDeliveries(bus)).rejects.toThrow(`${queue} is a stream`);
});

test("a message of another publisher gets an id that stays the same", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open();
  const recorded = await recordDeliveries(bus, ({ redelivered }) => (redelivered ? done : retry(20, "unknown")));
  await withChannel(broker.url, async (channel) => {
    // Else the broker might drop messages that were sent just before the channel closed.
    await channel.confirmSelect();
    await channel.basicPublish({ exchange: namespace.name, routingKey: subject }, { not: "an event" });
    await channel.basicPublish({ exchange: namespace.name, routingKey: subject }, "nor this");
  });
  await until("both are delivered twice", () => recorded.deliveries.length === 4);
  const payloads = recorded.deliveries.map(({ payload }) => Buffer.from(payload).toString());
  expect(new Set(payloads)).toEqual(new Set(['{"not":"an event"}', "nor this"]));
  expect(new Set(recorded.deliveries.map(({ eventId }) => eventId)).size).toBe(2);
});

test("subscribing while the broker is unavailable fails", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFaultProxy(broker.url);
  wire.cut();
  const bus = await namespace.open({ url: wire.url });
  await expect(recordDeliveries(bus)).rejects.toMatchObject({ name: "BusUnavailable" });
});

test.each([{ batchMax: 0 }, { concurrency: 0 }, { consumer: "a name" }])(
  "a subscription with %j is rejected",
  async (invalid) => {
    await using namespace = createNamespace(broker.url);
    const bus = await namespace.open();
    const request = { consumer: "listener", subjects: [subject], handle: async () => [] };
    await expect(bus.subscribe({ ...request, ...invalid })).rejects.toThrow(/must be/);
  },
);

test("a log that throws has no effect", async () => {
  await using namespace = createNamespace(broker.url);
  const log = () => {
    throw new Error("the disk of the log is full");
  };
  const bus = await namespace.open({ log, retryMs: 20 });
  const recorded = await recordDeliveries(bus, ({ redelivered }) => {
    if (!redelivered) throw new Error("the handler has a bug");
    return done;
  });
  await bus.publish([sampleEvent()]);
  await until("it is redelivered", () => recorded.deliveries.length === 2);
});
