import { expect, test } from "vitest";
import { sampleEvent } from "./conformance/harness.ts";
import { busConformance } from "./conformance/index.ts";
import { MemoryBroker, type MemoryBus, memoryBus } from "./memory.ts";

const brokers = new Map<string, MemoryBroker>();
const broker = (namespace: string) => brokers.getOrInsertComputed(namespace, () => new MemoryBroker());
const open = async (namespace: string) => memoryBus(broker(namespace));

busConformance({
  name: "memory",
  test,
  open,
  crash: async (bus) => (bus as MemoryBus).crash(),
  // There is no server to kill: events are in the memory of this process.
  ownBroker: async () => ({ open, restart: async () => {}, [Symbol.asyncDispose]: async () => {} }),
  payloadBytesMax: new MemoryBroker().payloadBytesMax,
  guarantees: { dedupes: true, ordersAfterRetry: true, ordersAcrossProcesses: true, replaysToNewConsumers: true },
});

test("the memory bus lists published events", async () => {
  await using bus = memoryBus();
  const event = sampleEvent({ payload: Uint8Array.of(1, 2, 3) });
  await bus.publish([event]);
  expect(bus.published).toEqual([event]);
});

test("changing a payload after publishing has no effect", async () => {
  await using bus = memoryBus();
  const payload = Uint8Array.of(1, 2, 3);
  await bus.publish([sampleEvent({ payload })]);
  payload[0] = 9;
  expect(bus.published[0]?.payload).toEqual(Uint8Array.of(1, 2, 3));
});
