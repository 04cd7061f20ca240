/** The names of all spans, metrics and log fields of the kernel. */
import type { MetricCatalogue } from "./metrics.ts";

export const spanNames = {
  /** The publish of one event; child of the request that wrote it. */
  publish: "outbox publish",
  /** The handling of one event by a consumer; child of the publish. */
  handle: "inbox handle",
} as const;

export const metricCatalogue = {
  "todoke.worker.jobs": {
    kind: "counter",
    unit: "{job}",
    description:
      "Jobs by outcome: done, retry, dead, release, settled (by the job itself), or lease_lost (another worker has claimed the job)",
    attributes: ["worker", "outcome"],
  },
  "todoke.worker.claim.duration": {
    kind: "histogram",
    unit: "s",
    description: "Duration of a claim",
    attributes: ["worker"],
  },
  "todoke.worker.errors": {
    kind: "counter",
    unit: "{error}",
    description: "Failed claims, renewals and settlements; the rows are claimable again when their lease expires",
    attributes: ["worker", "step"],
  },
  "todoke.outbox.publish.delay": {
    kind: "histogram",
    unit: "s",
    description: "Time from the insert of an event to its storage by the bus",
    attributes: ["subject"],
  },
  "todoke.outbox.unavailable": {
    kind: "counter",
    unit: "{batch}",
    description: "Batches released because the bus was unavailable",
    attributes: ["worker"],
  },
  "todoke.inbox.events": {
    kind: "counter",
    unit: "{event}",
    description: "Deliveries by result: effect, duplicate, retry, dead",
    attributes: ["consumer", "result"],
  },
  "todoke.inbox.dead.current": {
    kind: "gauge",
    unit: "{event}",
    description: "Dead-lettered events of a consumer that are not redriven",
    attributes: ["consumer"],
  },
  "todoke.idempotency.requests": {
    kind: "counter",
    unit: "{request}",
    description:
      "Requests with an idempotency key: first, replayed, conflict (another body), in_progress (the first one is still running)",
    attributes: ["result"],
  },
  "todoke.retention.removed": {
    kind: "counter",
    unit: "{row}",
    description: "Finished rows deleted by age",
    attributes: ["table"],
  },
} as const satisfies MetricCatalogue;

export type MetricName = keyof typeof metricCatalogue;

export const logFields = {
  requestId: "request_id",
  traceId: "trace_id",
  eventId: "event_id",
  eventType: "event_type",
  aggregateKey: "aggregate_key",
  consumer: "consumer",
  worker: "worker",
  attempt: "attempt",
  outcome: "outcome",
  /** The address of the client. */
  address: "address",
  /** The authenticated caller. */
  caller: "caller",
  /** SHA-256, never the key itself. */
  idempotencyKey: "idempotency_key_hash",
} as const;
