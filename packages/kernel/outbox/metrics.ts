/**
 * The metrics of a service's outbox, prefixed with its name ("account.outbox.backlog"). They are the same for every service,
 * so that alerts and dashboards fit all of them.
 */
import type { Db } from "../db/index.ts";
import { createMeters, type GaugeValue, gauge, type Metric, observeGauges } from "../telemetry/index.ts";
import { outboxBacklog } from "./store.ts";

type Gauge<Service extends string> = `${Service}.outbox.${"backlog" | "backlog.age" | "failed.current"}`;

/** Keyed by literal names, so that the catalogue of the service that includes it is typed too. */
type OutboxCatalogue<Service extends string> = Readonly<
  Record<`${Service}.outbox.publish.delay`, Metric & { readonly kind: "histogram" }> &
    Record<Gauge<Service>, Metric & { readonly kind: "gauge" }>
>;

export interface OutboxMetrics<Service extends string> {
  /** Spread it into the catalogue of the service. */
  readonly catalogue: OutboxCatalogue<Service>;
  /** For the relay's `onPublished`. */
  recordPublished(event: unknown, delaySeconds: number): void;
  /** Reports the gauges until disposed. */
  observe(db: Db, onError: (error: unknown) => void): AsyncDisposable;
  /** Reads the gauges now. */
  read(db: Db): Promise<readonly GaugeValue<Gauge<Service>>[]>;
}

/** Creates the outbox metrics of a service. */
export function outboxMetrics<Service extends string>(service: Service): OutboxMetrics<Service> {
  const scope = `@todoke/${service}`;
  const catalogue = createCatalogue(service);
  const { observeValue } = createMeters<OutboxCatalogue<string>>(scope, catalogue);

  async function read(db: Db): Promise<readonly GaugeValue<Gauge<Service>>[]> {
    const { pending, inFlight, failed, oldestClaimableMs } = await outboxBacklog(db);
    return [
      { name: `${service}.outbox.backlog`, value: pending, attributes: { status: "pending" } },
      { name: `${service}.outbox.backlog`, value: inFlight, attributes: { status: "in_flight" } },
      { name: `${service}.outbox.backlog.age`, value: oldestClaimableMs / 1_000 },
      { name: `${service}.outbox.failed.current`, value: failed },
    ];
  }

  return {
    catalogue,
    read,
    recordPublished: (_event, delaySeconds) => observeValue(`${service}.outbox.publish.delay`, delaySeconds, {}),
    observe: (db, onError) =>
      observeGauges<OutboxCatalogue<string>>({
        scope,
        catalogue,
        gauges: [`${service}.outbox.backlog`, `${service}.outbox.backlog.age`, `${service}.outbox.failed.current`],
        read: () => read(db),
        onError,
      }),
  };
}

function createCatalogue<Service extends string>(service: Service) {
  return {
    [`${service}.outbox.publish.delay`]: {
      kind: "histogram",
      unit: "s",
      description: "Time from the insert of an event to its storage by the bus",
      attributes: [],
    },
    [`${service}.outbox.backlog`]: gauge(
      "{event}",
      "Events that are not published yet: pending, or in_flight (claimed by a relay)",
      ["status"],
    ),
    [`${service}.outbox.backlog.age`]: gauge("s", "Age of the oldest event that a relay could publish now"),
    [`${service}.outbox.failed.current`]: gauge("{event}", "FAILED events that wait for a redrive"),
  } as OutboxCatalogue<Service>; // TypeScript widens computed names to string.
}
