/** The events that a service emits: its outbox with relay, gauges, retention, dead letters and routes. */
import { type EventType, encodeOutboxEvent, type events } from "@todoke/contracts";
import { deadOutboxEvents, outboxEvents, outboxMetrics, outboxTable, relay } from "@todoke/kernel/outbox";
import { type RetentionPolicy, retentionOf } from "@todoke/kernel/retention";
import { outboxRoutes } from "./outbox-routes.ts";
import type { Runtime } from "./runtime.ts";

/** A subject of @todoke/contracts: "account.events". */
export type Subject = (typeof events)[EventType]["subject"];

export const outboxDeadLetters = deadOutboxEvents;
export const outboxWork = { table: outboxEvents.table };

/** Idempotency keys too: a service that emits has commands. */
export const outboxRetention = (): readonly RetentionPolicy[] => [
  retentionOf.publishedEvents(),
  retentionOf.idempotencyKeys(),
];

export const wakeRelay = ({ wakeups, topicOf }: Pick<Runtime, "wakeups" | "topicOf">) =>
  wakeups.signal(topicOf(outboxTable));

export function startOutbox(runtime: Runtime): void {
  const { name, db, bus, wakeups, workers, hasRole, debug, use, onError, topicOf } = runtime;
  const metrics = outboxMetrics(name);
  if (hasRole("maintenance")) use(metrics.watch(db, onError));
  if (hasRole("relay"))
    use(
      relay({
        name: `${name} relay`,
        db,
        bus,
        encode: encodeOutboxEvent,
        settings: workers.relay ?? {},
        wakeups,
        topic: topicOf(outboxTable),
        onPublished: metrics.tellPublished,
        onError,
      }),
    ).start();
  debug((app) => outboxRoutes(app, { db, onRedriven: () => wakeRelay(runtime) }));
}
