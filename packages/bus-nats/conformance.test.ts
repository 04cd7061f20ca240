import { startEngine } from "@todoke/engines";
import type { EventBus } from "@todoke/kernel/bus";
import {
  busConformance,
  type FaultProxy,
  type OpenOptions,
  type OwnBroker,
  openFaultProxy,
} from "@todoke/kernel/bus/conformance";
import { test } from "vitest";
import { openNatsBus } from "./index.ts";
import { sharedServer } from "./testing.ts";

const server = sharedServer();
const wires = new WeakMap<EventBus, FaultProxy>();

/** Connects through a proxy of its own, which `crash` cuts. */
async function openProcess(place: string, { ackWaitMs }: OpenOptions): Promise<EventBus> {
  const wire = await openFaultProxy(server.url);
  const bus = await openNatsBus({
    url: wire.url,
    name: "conformance",
    namespace: place,
    ackWaitMs,
    publishTimeoutMs: 30_000,
  });
  wires.set(bus, wire);
  return bus;
}

async function ownBroker(): Promise<OwnBroker> {
  const engine = await startEngine("nats");
  return {
    open: (place, { ackWaitMs }) => openNatsBus({ url: engine.url, name: "conformance", namespace: place, ackWaitMs }),
    async restart() {
      await engine.kill();
      await engine.start();
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

busConformance({
  name: "nats",
  test,
  open: openProcess,
  crash: async (bus) => wires.get(bus)?.cut(),
  ownBroker,
  // The server's default max_payload. It includes headers, so the payload can be a little smaller only.
  payloadBytesMax: 1_048_576,
  guarantees: { dedupes: true, ordersAfterRetry: false, ordersAcrossProcesses: false, replaysToNewConsumers: true },
});
