import { startEngine } from "@todoke/engines";
import type { EventBus } from "@todoke/kernel/bus";
import { busConformance, type FaultProxy, openFaultProxy } from "@todoke/kernel/bus/conformance";
import { testDatabase } from "@todoke/kernel/testing";
import { afterAll, test } from "vitest";
import { openPostgresBus } from "./index.ts";

const shared = await testDatabase({ sets: [] });
const wires = new Map<EventBus, FaultProxy>();

/** Opens a bus whose connection can be cut. The namespace is a schema. */
async function open(url: string, schema: string, ackWaitMs: number): Promise<EventBus> {
  const wire = await openFaultProxy(url);
  const bus = await openPostgresBus({ url: wire.url, schema, ackWaitMs, pollMs: 100 });
  wires.set(bus, wire);
  return bus;
}

afterAll(async () => {
  for (const wire of wires.values()) await wire[Symbol.asyncDispose]();
  await shared[Symbol.asyncDispose]();
});

busConformance({
  name: "PostgreSQL",
  test,
  open: (schema, { ackWaitMs }) => open(shared.url, schema, ackWaitMs),
  crash: async (bus) => wires.get(bus)?.cut(),
  async ownBroker() {
    const engine = await startEngine("postgres");
    return {
      open: (schema, { ackWaitMs }) => open(engine.url, schema, ackWaitMs),
      async restart() {
        await engine.kill();
        await engine.start();
      },
      [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
    };
  },
  payloadBytesMax: 8 * 1024 * 1024,
  guarantees: { dedupes: true, ordersAfterRetry: true, ordersAcrossProcesses: true, replaysToNewConsumers: true },
});
