import { randomUUID } from "node:crypto";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import { type Engine, startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBus } from "./bus.ts";

/** A private server: on a shared one the queues may already exist. The first test declares some of them only. */
let rabbitmq: Engine;
beforeAll(async () => {
  rabbitmq = await startEngine("rabbitmq");
});
afterAll(() => rabbitmq?.[Symbol.asyncDispose]());

test("a process declares queues only for the consumers of what it publishes, with the names of the contract", async () => {
  const { url } = rabbitmq;
  const event = (subject: string) => ({
    eventId: randomUUID(),
    eventType: "T",
    subject,
    aggregateKey: randomUUID(),
    occurredAt: "2026-01-08T07:10:00Z",
    headers: {},
    payload: new Uint8Array(),
  });
  await using account = await openBus(url, "account", { emits: ["account.events"] });
  expect(await account.publish([event("account.events")])).toEqual([done]);
  // No queue takes it: account does not publish it, so it has not declared the queue of the consumer.
  expect(await account.publish([event("points.reservations")])).toMatchObject([{ kind: "release" }]);
  await using points = await openBus(url, "points", { emits: ["points.reservations"] });
  const reservation = event("points.reservations");
  expect(await points.publish([reservation])).toEqual([done]);

  const received: string[] = [];
  await using reader = await openRabbitmqBus({ url, name: "reader", queues: { reader: "reservationQueue" } });
  await using _ = await reader.subscribe({
    consumer: "reader",
    subjects: [],
    async handle(deliveries) {
      received.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
  });
  await until("the queue has it", () => received.length > 0);
  expect(received).toEqual([reservation.eventId]);
});

test("RabbitMQ keeps an event for a consumer that has never run", async () => {
  const { url } = rabbitmq;
  await using bus = await openBus(url, "publisher");
  const [subject] = consumers.notification;
  const event = {
    eventId: randomUUID(),
    eventType: "EntitlementGranted",
    subject,
    aggregateKey: "u_123/item1",
    occurredAt: "2026-01-08T07:10:00Z",
    headers: {},
    payload: Buffer.from("bytes"),
  };
  expect(await bus.publish([event])).toEqual([done]);

  const received: string[] = [];
  await using later = await openBus(url, "consumer");
  await using _ = await later.subscribe({
    consumer: "notification",
    subjects: [subject],
    async handle(deliveries) {
      received.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
  });
  await until("the event is delivered", () => received.includes(event.eventId));
});

test("a NATS stream keeps events for the configured time, and a different setting is a warning", async () => {
  await using engine = await startEngine("nats");
  const dayMs = 86_400_000;
  const openFor = (days: number) => openBus(engine.url, "test", { keepMs: days * dayMs });
  await using bus = await openFor(3);
  const event = {
    eventId: randomUUID(),
    eventType: "T",
    subject: "s.events",
    aggregateKey: "a",
    occurredAt: "2026-01-08T07:10:00Z",
    headers: {},
    payload: new Uint8Array(),
  };
  await until("it is stored", async () => (await bus.publish([event]).catch(() => []))[0]?.kind === "done");
  expect((await bus.check()).warnings).toEqual([]);
  await using longer = await openFor(7);
  await using shorter = await openFor(1);
  const warningsOf = async (of: typeof bus) => {
    await until("it is connected", () => of.check().then(Boolean, () => false));
    return (await of.check()).warnings;
  };
  expect(await warningsOf(longer)).toEqual([expect.stringContaining("drops events sooner than configured")]);
  expect(await warningsOf(shorter)).toEqual([expect.stringContaining("keeps events longer than configured")]);
});

test("an unknown scheme is a settings error that lists the known ones", async () => {
  await expect(openBus("kafka://localhost", "test")).rejects.toThrow(
    "should begin with nats://, amqp:// or postgres://",
  );
});
