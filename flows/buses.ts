/** The three buses; every flow runs on each of them. */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers, rabbitmqQueues as queues } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import type { EventBus } from "@todoke/kernel/bus";

export const busKinds = ["postgres", "nats", "rabbitmq"] as const;
export type BusKind = (typeof busKinds)[number];

export interface BusAddress {
  readonly kind: BusKind;
  readonly url: string;
  /** Separates the tests on one server. */
  readonly namespace: string;
}

/** How long a silent process keeps its messages; short, so that tests wait less. */
const ackWaitMs = 1_000;

export function openBus({ kind, url, namespace }: BusAddress): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ url, schema: namespace, ackWaitMs, pollMs: 100 });
    case "nats":
      return openNatsBus({ url, name: "flows", namespace, ackWaitMs });
    case "rabbitmq":
      return openRabbitmqBus({
        url,
        name: "flows",
        namespace,
        consumers: { [consumer]: [subject] },
        retryMs: 100,
      });
  }
}

/** Opens the bus as `todoke serve` does. */
export function openServiceBus(kind: BusKind, url: string): Promise<EventBus> {
  const options = { url, name: "flows" };
  switch (kind) {
    case "postgres":
      return openPostgresBus(options);
    case "nats":
      return openNatsBus(options);
    case "rabbitmq":
      return openRabbitmqBus({ ...options, consumers, queues });
  }
}

export const consumer = "flow";
export const subject = "flow.events";

/** The server that `npm test` started; the PostgreSQL bus uses the database of the test. */
export function serverUrl(kind: BusKind, databaseUrl: string): string {
  if (kind === "postgres") return databaseUrl;
  const variable = kind === "nats" ? "TEST_NATS_URL" : "TEST_RABBITMQ_URL";
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} is not set: run the flows with \`npm test\`, which starts the servers`);
  return url;
}

/** Starts a message broker for one test, because `todoke serve` always uses the same names and keeps its streams. */
export async function startMessageBroker(kind: BusKind, databaseUrl: string) {
  if (kind !== "postgres") return startEngine(kind);
  return { url: databaseUrl, async [Symbol.asyncDispose]() {} };
}
