import { randomUUID } from "node:crypto";
import { consumers } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openBus } from "./bus.ts";

test("RabbitMQ keeps an event for a consumer that has never run", async () => {
  // A private server: on a shared one the queue may already exist.
  await using engine = await startEngine("rabbitmq");
  const { url } = engine;
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

test("an unknown scheme in EVENT_BUS_URL is a settings error that lists the known ones", async () => {
  await expect(openBus("kafka://localhost", "test")).rejects.toThrow("EVENT_BUS_URL should begin with");
});
