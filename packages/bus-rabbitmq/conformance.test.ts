import { startEngine } from "@todoke/engines";
import type { EventBus } from "@todoke/kernel/bus";
import { busConformance, type FaultProxy, type OwnBroker, openFaultProxy } from "@todoke/kernel/bus/conformance";
import { afterAll, test } from "vitest";
import { openRabbitmqBus } from "./index.ts";
import { createNamespace, sharedBroker, startMs, type TestNamespace } from "./testing.ts";

const broker = sharedBroker();
const namespaces = new Map<string, TestNamespace>();
const wires = new Map<EventBus, FaultProxy>();

afterAll(async () => {
  for (const namespace of namespaces.values()) await namespace[Symbol.asyncDispose]();
  for (const wire of wires.values()) await wire[Symbol.asyncDispose]();
}, startMs);

/** Connects through a proxy of its own, which `crash` cuts. */
async function open(name: string): Promise<EventBus> {
  const wire = await openFaultProxy(broker.url);
  const namespace = namespaces.getOrInsertComputed(name, () => createNamespace(broker.url, name));
  const bus = await namespace.open({ url: wire.url });
  wires.set(bus, wire);
  return bus;
}

async function ownBroker(): Promise<OwnBroker> {
  const engine = await startEngine("rabbitmq");
  return {
    open: (namespace) => openRabbitmqBus({ url: engine.url, name: "conformance", namespace: namespace }),
    async restart() {
      await engine.kill();
      await engine.start();
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

busConformance({
  name: "rabbitmq",
  test,
  open,
  crash: async (bus) => wires.get(bus)?.cut(),
  ownBroker,
  payloadBytesMax: 1_048_576,
  guarantees: { dedupes: false, ordersAfterRetry: false, ordersAcrossProcesses: false, replaysToNewConsumers: false },
});
