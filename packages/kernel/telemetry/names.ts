/** Every span, metric and log field that the kernel names. Nothing of the kernel is named anywhere else. */
import type { MetricCatalogue } from "./metrics.ts";

export const spanNames = {
  /** One event on its way from the outbox to the bus; child of the request that wrote it. */
  publish: "outbox publish",
  /** One event taking effect at a consumer; child of the publish. */
  handle: "inbox handle",
} as const;

export const metricCatalogue = {
  "todoke.worker.jobs": {
    kind: "counter",
    unit: "{job}",
    description:
      "Jobs by what became of them: done, retry, dead, release, settled (by the job itself), or lease_lost (another worker holds them now)",
    attributes: ["worker", "outcome"],
  },
  "todoke.worker.claim.duration": {
    kind: "histogram",
    unit: "s",
    description: "Time that one claim took",
    attributes: ["worker"],
  },
  "todoke.worker.errors": {
    kind: "counter",
    unit: "{error}",
    description: "Claims, renewals and settlements that failed; the rows come back when their lease lapses",
    attributes: ["worker", "step"],
  },
  "todoke.outbox.publish.delay": {
    kind: "histogram",
    unit: "s",
    description: "From the event's row being written to the bus having stored it",
    attributes: ["subject"],
  },
  "todoke.outbox.unavailable": {
    kind: "counter",
    unit: "{batch}",
    description: "Batches given back because the bus could not be reached",
    attributes: ["worker"],
  },
  "todoke.inbox.events": {
    kind: "counter",
    unit: "{event}",
    description: "Events by what became of them at a consumer: effect, duplicate, retry, dead",
    attributes: ["consumer", "result"],
  },
  "todoke.inbox.dead.current": {
    kind: "gauge",
    unit: "{event}",
    description: "Events that a consumer has put away and nobody has redriven",
    attributes: ["consumer"],
  },
  "todoke.idempotency.requests": {
    kind: "counter",
    unit: "{request}",
    description:
      "Requests with a key: first, replayed, conflict (other body), in_progress (the first one is not finished)",
    attributes: ["result"],
  },
  "todoke.retention.removed": {
    kind: "counter",
    unit: "{row}",
    description: "Finished rows removed by age",
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
  /** Where a request comes from. */
  address: "address",
  /** Who sent it, once that is known. */
  caller: "caller",
  /** SHA-256, never the key itself. */
  idempotencyKey: "idempotency_key_hash",
} as const;
