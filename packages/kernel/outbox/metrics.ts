/**
 * What a service tells of its outbox, under its own name: "account.outbox.backlog". Alike for all, so that an alert or a
 * dashboard written for one fits the others.
 */
import type { Db } from "../db/index.ts";
import { type Metric, metersOf, type Reading, watch } from "../telemetry/index.ts";
import { outboxBacklog } from "./store.ts";

type Gauge<Service extends string> = `${Service}.outbox.${"backlog" | "backlog.age" | "failed.current"}`;

/** By literal names, so that a service's own catalogue, of which these are a part, knows them too. */
type OutboxCatalogue<Service extends string> = Readonly<
  Record<`${Service}.outbox.publish.delay`, Metric & { readonly kind: "histogram" }> &
    Record<Gauge<Service>, Metric & { readonly kind: "gauge" }>
>;

export interface OutboxMetrics<Service extends string> {
  /** To be spread into the catalogue of the service. */
  readonly catalogue: OutboxCatalogue<Service>;
  /** The relay's `onPublished`. */
  tellPublished(event: unknown, delaySeconds: number): void;
  /** The gauges, until disposed. */
  watch(db: Db, onError: (error: unknown) => void): AsyncDisposable;
  /** What the gauges say now. */
  read(db: Db): Promise<readonly Reading<Gauge<Service>>[]>;
}

export function outboxMetrics<Service extends string>(service: Service): OutboxMetrics<Service> {
  const scope = `@todoke/${service}`;
  const catalogue = catalogueOf(service);
  const { observeValue } = metersOf<OutboxCatalogue<string>>(scope, catalogue);

  async function read(db: Db): Promise<readonly Reading<Gauge<Service>>[]> {
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
    tellPublished: (_event, delaySeconds) => observeValue(`${service}.outbox.publish.delay`, delaySeconds, {}),
    watch: (db, onError) =>
      watch<OutboxCatalogue<string>>({
        scope,
        catalogue,
        gauges: [`${service}.outbox.backlog`, `${service}.outbox.backlog.age`, `${service}.outbox.failed.current`],
        read: () => read(db),
        onError,
      }),
  };
}

function catalogueOf<Service extends string>(service: Service) {
  return {
    [`${service}.outbox.publish.delay`]: {
      kind: "histogram",
      unit: "s",
      description: "From the event's row being written to the bus having stored it",
      attributes: [],
    },
    [`${service}.outbox.backlog`]: {
      kind: "gauge",
      unit: "{event}",
      description: "Events that are not published yet: pending, or in_flight with a relay",
      attributes: ["status"],
    },
    [`${service}.outbox.backlog.age`]: {
      kind: "gauge",
      unit: "s",
      description: "Age of the oldest event that a relay could publish now",
      attributes: [],
    },
    [`${service}.outbox.failed.current`]: {
      kind: "gauge",
      unit: "{event}",
      description: "Events that are FAILED and wait for somebody to redrive them",
      attributes: [],
    },
  } as OutboxCatalogue<Service>; // TypeScript takes a name that is put together for any string.
}
