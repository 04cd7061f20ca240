import { type Delivery, memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { flakyBus, noFaults } from "./flaky-bus.ts";

const event = (n: number) => ({
  eventId: `00000000-0000-7000-8000-00000000000${n}`,
  eventType: "Happened",
  subject: "entitlement.events",
  aggregateKey: `a${n}`,
  occurredAt: "2027-01-01T00:00:00Z",
  headers: {},
  payload: new Uint8Array(),
});

async function deliveriesWith(faults: Parameters<typeof flakyBus>[1]): Promise<Delivery[]> {
  await using inner = memoryBus();
  await using bus = flakyBus(inner, faults);
  const delivered: Delivery[] = [];
  await bus.publish([event(1), event(2)]);
  await using _ = await bus.subscribe({
    consumer: "test",
    subjects: ["entitlement.events"],
    async handle(deliveries) {
      delivered.push(...deliveries);
      return deliveries.map(() => done);
    },
  });
  await until("both are delivered", () => new Set(delivered.map(({ eventId }) => eventId)).size === 2);
  return delivered;
}

test("a flaky bus without faults delivers every event once", async () => {
  expect((await deliveriesWith(noFaults())).map(({ aggregateKey }) => aggregateKey)).toEqual(["a1", "a2"]);
});

test("a repeated delivery is marked as redelivered", async () => {
  const delivered = await deliveriesWith({ ...noFaults(), deliverTwice: 5 });
  expect(delivered).toHaveLength(4);
  expect(delivered.filter(({ redelivered }) => redelivered)).toHaveLength(2);
});

test("a fault ends after its number of batches", async () => {
  const faults = { ...noFaults(), publishTwice: 1 };
  await using inner = memoryBus();
  await using bus = flakyBus(inner, faults);
  await bus.publish([event(1)]);
  await bus.publish([event(2)]);
  expect(faults.publishTwice).toBe(0);
});
