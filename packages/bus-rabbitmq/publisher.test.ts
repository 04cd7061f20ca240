import { BusUnavailable } from "@todoke/kernel/bus";
import { openFaultProxy } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import {
  blocked,
  createNamespace,
  declareQueue,
  openFrameProxy,
  recordDeliveries,
  sampleEvent,
  sampleEvents,
  sharedBroker,
  subject,
  unblocked,
  withChannel,
} from "./testing.ts";

const broker = sharedBroker();
const consumers = { listener: [subject] };

test("an event that no queue takes is released, with what to do", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open();
  const [outcome] = await bus.publish([sampleEvent({ subject: "unrouted.events" })]);
  expect(outcome).toMatchObject({
    kind: "release",
    reason: expect.stringContaining("no queue is bound for unrouted.events"),
  });
});

test("of many events in flight, only those that no queue takes are released", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open({ consumers });
  const events = Array.from({ length: 300 }, (_, n) =>
    sampleEvent({ subject: n % 3 === 0 ? "unrouted.events" : subject }),
  );
  const batches = [events.slice(0, 100), events.slice(100, 200), events.slice(200)];
  const outcomes = (await Promise.all(batches.map((batch) => bus.publish(batch)))).flat();
  expect(outcomes.map(({ kind }) => kind)).toEqual(events.map((_, n) => (n % 3 === 0 ? "release" : "done")));
  await until(
    "the others are stored",
    async () => (await namespace.countMessages(namespace.queueName("listener"))) === 200,
  );
});

test("no returned copy of an event that is published several times is done", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open();
  const event = sampleEvent();
  const outcomes = (await Promise.all([bus.publish([event, event, event]), bus.publish([event])])).flat();
  expect(outcomes.map(({ kind }) => kind)).toEqual(["release", "release", "release", "release"]);
});

test("events are stored for a named consumer that has never run", async () => {
  await using namespace = createNamespace(broker.url);
  const events = sampleEvents(5);
  const publisher = await namespace.open({ consumers });
  expect(await publisher.publish(events)).toEqual(events.map(() => done));
  const recorded = await recordDeliveries(await namespace.open());
  await until("the consumer has them", () => recorded.deliveries.length === 5);
});

test("a deleted exchange is declared again, and events in between are not done", async () => {
  await using namespace = createNamespace(broker.url);
  const bus = await namespace.open({ consumers });
  await bus.publish([sampleEvent()]);
  await withChannel(broker.url, (channel) => channel.exchangeDelete({ exchange: namespace.name }));
  const events = sampleEvents(100);
  const outcomes = await bus.publish(events);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["retry"]));
  expect(await bus.publish(events)).toEqual(events.map(() => done));
  await until("all are stored", async () => (await namespace.countMessages(namespace.queueName("listener"))) === 101);
});

test("a full queue refuses events, and they are released", async () => {
  await using namespace = createNamespace(broker.url);
  const queue = namespace.queueName("listener");
  const args = { "x-queue-type": "quorum", "x-max-length": 5, "x-overflow": "reject-publish" };
  await declareQueue(broker.url, queue, args);
  const bus = await namespace.open({ consumers });
  const outcomes = [];
  for (const event of sampleEvents(20)) outcomes.push(...(await bus.publish([event])));
  expect(outcomes.at(-1)).toMatchObject({ kind: "release", reason: expect.stringContaining("rejected by server") });
  const stored = outcomes.filter(({ kind }) => kind === "done").length;
  await until("the accepted events are stored", async () => (await namespace.countMessages(queue)) === stored);
});

test("an event that is not confirmed within the timeout is retried", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFaultProxy(broker.url);
  const bus = await namespace.open({ url: wire.url, consumers, publishTimeoutMs: 300 });
  await until("publishing works", async () => (await bus.publish([sampleEvent()]).catch(() => []))[0]?.kind === "done");
  wire.dropResponses();
  const [outcome] = await bus.publish([sampleEvent()]);
  expect(outcome).toMatchObject({ kind: "retry", reason: "RabbitMQ did not confirm it within 300 ms" });
});

test("publishing fails at once while the broker blocks it, and works again afterwards", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFrameProxy(broker.url);
  const bus = await namespace.open({ url: wire.url, consumers });
  expect(await bus.publish([sampleEvent()])).toEqual([done]);

  wire.send(blocked("low on memory"));
  await until("the bus has noticed", async () => (await bus.check()).warnings.length === 1);
  expect((await bus.check()).warnings).toEqual([expect.stringContaining("accepts no messages (low on memory)")]);
  await expect(bus.publish([sampleEvent()])).rejects.toThrow(
    new BusUnavailable("RabbitMQ accepts no messages at the moment: low on memory"),
  );

  wire.send(unblocked());
  await until("the bus has noticed", async () => (await bus.check()).warnings.length === 0);
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
});

test("a bus can be closed while the broker blocks it", async () => {
  await using namespace = createNamespace(broker.url);
  await using wire = await openFrameProxy(broker.url);
  const bus = await namespace.open({ url: wire.url, consumers });
  await bus.publish([sampleEvent()]);
  wire.send(blocked("low on disk"));
  await until("the bus has noticed", async () => (await bus.check()).warnings.length === 1);
  await bus[Symbol.asyncDispose]();
  await expect(bus.publish([sampleEvent()])).rejects.toThrow("this bus is closed");
});
