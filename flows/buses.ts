/** The three buses, opened alike: every flow is told on each of them. */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import type { EventBus } from "@todoke/kernel/bus";

export const busKinds = ["postgres", "nats", "rabbitmq"] as const;
export type BusKind = (typeof busKinds)[number];

export interface BusPlace {
  readonly kind: BusKind;
  readonly url: string;
  /** Keeps what belongs to one test apart from all else on the same server. */
  readonly place: string;
}

/** How long a silent process keeps its messages. Short, so that the tests need not wait for long. */
const ackWaitMs = 1_000;

export function openBus({ kind, url, place }: BusPlace): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ url, schema: place, ackWaitMs, pollMs: 100 });
    case "nats":
      return openNatsBus({ url, name: "flows", namespace: place, ackWaitMs });
    case "rabbitmq":
      return openRabbitmqBus({
        url,
        name: "flows",
        namespace: place,
        consumers: { [consumer]: [subject] },
        retryMs: 100,
      });
  }
}

/** As `todoke serve` opens it. */
export function openServedBus(kind: BusKind, url: string): Promise<EventBus> {
  const about = { url, name: "flows" };
  switch (kind) {
    case "postgres":
      return openPostgresBus(about);
    case "nats":
      return openNatsBus(about);
    case "rabbitmq":
      return openRabbitmqBus({ ...about, consumers });
  }
}

export const consumer = "flow";
export const subject = "flow.events";

/** `npm test` names the servers; the bus on PostgreSQL shares the test's own database. */
export function serverOf(kind: BusKind, databaseUrl: string): string {
  if (kind === "postgres") return databaseUrl;
  const variable = kind === "nats" ? "TEST_NATS_URL" : "TEST_RABBITMQ_URL";
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} is not set: run the flows with \`npm test\`, which starts the servers`);
  return url;
}

/** A broker of a test's own: `todoke serve` has one name for its things there, and keeps them. */
export async function startBroker(kind: BusKind, databaseUrl: string) {
  if (kind !== "postgres") return startEngine(kind);
  return { url: databaseUrl, async [Symbol.asyncDispose]() {} };
}
