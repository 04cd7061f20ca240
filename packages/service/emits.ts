/** The events that a service emits: its outbox with relay, gauges, retention, dead letters and routes. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { createRelay, outboxClaims, outboxMetrics, outboxTable, type SubjectFilter } from "@todoke/kernel/outbox";
import { type RetentionPolicy, retentionPolicies } from "@todoke/kernel/retention";
import type { ServiceBus } from "./buses.ts";
import { outboxRoutes } from "./outbox-routes.ts";
import type { RetentionSettings } from "./retention-settings.ts";
import type { Runtime } from "./runtime.ts";

export const outboxWork = { table: outboxClaims.table };

export const outboxRetention = ({ publishedMs }: RetentionSettings): readonly RetentionPolicy[] => [
  retentionPolicies.publishedEvents(publishedMs),
];

export function startOutbox(runtime: Runtime): void {
  const { name, db, hasRole, debug, use, onError, wakeRelay } = runtime;
  const metrics = outboxMetrics(name);
  if (hasRole("maintenance")) use(metrics.observe(db, onError));
  if (hasRole("relay")) startRelays(runtime, metrics.recordPublished);
  debug((app) => outboxRoutes(app, { db, onRedriven: wakeRelay }));
}

/** One relay for each bus that the service publishes to. */
function startRelays(runtime: Runtime, onPublished: (event: unknown, delaySeconds: number) => void): void {
  const { name, db, publisher, wakeups, workers, use, onError, topicOf } = runtime;
  const [first, ...others] = runtime.buses.filter(({ emits }) => emits.length > 0);
  const start = ({ bus }: ServiceBus, of: { readonly name: string; readonly subjects?: SubjectFilter }) =>
    use(
      createRelay({
        ...of,
        db,
        bus,
        ...(publisher && { publisher }),
        encode: encodeOutboxEvent,
        settings: workers.relay ?? {},
        wakeups,
        topic: topicOf(outboxTable),
        onPublished,
        onError,
      }),
    ).start();
  for (const other of others)
    start(other, { name: `${name} relay (${other.emits.join(", ")})`, subjects: { only: other.emits } });
  if (!first) return;
  // All others, so that an event with a subject that this build does not declare is published too.
  const except = others.flatMap(({ emits }) => emits);
  start(first, { name: `${name} relay`, ...(except.length > 0 && { subjects: { except } }) });
}
