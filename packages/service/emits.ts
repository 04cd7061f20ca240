/** The events that a service emits: its outbox with relay, gauges, retention, dead letters and routes. */
import { type EventType, encodeOutboxEvent, type events } from "@todoke/contracts";
import { createRelay, outboxClaims, outboxMetrics, outboxTable } from "@todoke/kernel/outbox";
import { type RetentionPolicy, retentionPolicies } from "@todoke/kernel/retention";
import { outboxRoutes } from "./outbox-routes.ts";
import type { Runtime } from "./runtime.ts";

/** A subject of @todoke/contracts: "account.events". */
export type Subject = (typeof events)[EventType]["subject"];

export const outboxWork = { table: outboxClaims.table };

/** Idempotency keys too: a service that emits has commands. */
export const outboxRetention = (): readonly RetentionPolicy[] => [
  retentionPolicies.publishedEvents(),
  retentionPolicies.idempotencyKeys(),
];

export function startOutbox(runtime: Runtime): void {
  const { name, db, bus, publisher, wakeups, workers, hasRole, debug, use, onError, topicOf, wakeRelay } = runtime;
  const metrics = outboxMetrics(name);
  if (hasRole("maintenance")) use(metrics.observe(db, onError));
  if (hasRole("relay"))
    use(
      createRelay({
        name: `${name} relay`,
        db,
        bus,
        ...(publisher && { publisher }),
        encode: encodeOutboxEvent,
        settings: workers.relay ?? {},
        wakeups,
        topic: topicOf(outboxTable),
        onPublished: metrics.recordPublished,
        onError,
      }),
    ).start();
  debug((app) => outboxRoutes(app, { db, onRedriven: wakeRelay }));
}
