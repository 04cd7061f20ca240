import { type Delivery, memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { flakyBus, steady } from "./flaky-bus.ts";

const event = (n: number) => ({
  eventId: `00000000-0000-7000-8000-00000000000${n}`,
  eventType: "Happened",
  subject: "entitlement.events",
  aggregateKey: `a${n}`,
  occurredAt: "2027-01-01T00:00:00Z",
  headers: {},
  payload: new Uint8Array(),
});

async function heardOf(faults: Parameters<typeof flakyBus>[1]): Promise<Delivery[]> {
  await using inner = memoryBus();
  await using bus = flakyBus(inner, faults);
  const heard: Delivery[] = [];
  await bus.publish([event(1), event(2)]);
  await using _ = await bus.subscribe({
    consumer: "test",
    subjects: ["entitlement.events"],
    async handle(deliveries) {
      heard.push(...deliveries);
      return deliveries.map(() => done);
    },
  });
  await until("both are heard", () => new Set(heard.map(({ eventId }) => eventId)).size === 2);
  return heard;
}

test("a bus that is not told to shake does nothing of its own", async () => {
  expect((await heardOf(steady())).map(({ aggregateKey }) => aggregateKey)).toEqual(["a1", "a2"]);
});

test("a delivery comes twice, and the second says that it may have come before", async () => {
  const heard = await heardOf({ ...steady(), deliverTwice: 5 });
  expect(heard).toHaveLength(4);
  expect(heard.filter(({ redelivered }) => redelivered)).toHaveLength(2);
});

test("it faults for as many batches as it was told, and not longer", async () => {
  const faults = { ...steady(), publishTwice: 1 };
  await using inner = memoryBus();
  await using bus = flakyBus(inner, faults);
  await bus.publish([event(1)]);
  await bus.publish([event(2)]);
  expect(faults.publishTwice).toBe(0);
});
