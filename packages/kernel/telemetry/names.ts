/** The names of all spans, metrics and log fields of the kernel. */
import { counter, gauge, histogram, type MetricCatalogue } from "./catalogue.ts";

export const spanNames = {
  /** The publish of one event; child of the request that wrote it. */
  publish: "outbox publish",
  /** The handling of one event by a consumer; child of the publish. */
  handle: "inbox handle",
} as const;

export const metricCatalogue = {
  "todoke.worker.jobs": counter(
    "{job}",
    "Jobs by outcome: done, retry, dead, release, settled (by the job itself), or lease_lost (another worker has claimed the job)",
    ["worker", "outcome"],
  ),
  "todoke.worker.claim.duration": histogram("s", "Duration of a claim", ["worker"]),
  "todoke.worker.errors": counter(
    "{error}",
    "Failed claims, renewals and settlements; the rows are claimable again when their lease expires",
    ["worker", "step"],
  ),
  "todoke.outbox.publish.delay": histogram("s", "Time from the insert of an event to its storage by the bus", [
    "subject",
  ]),
  "todoke.outbox.unavailable": counter("{batch}", "Batches released because the bus was unavailable", ["worker"]),
  "todoke.inbox.events": counter("{event}", "Deliveries by result: effect, duplicate, retry, dead", [
    "consumer",
    "result",
  ]),
  "todoke.inbox.dead.current": gauge("{event}", "Dead-lettered events of a consumer that are not redriven", [
    "consumer",
  ]),
  "todoke.idempotency.requests": counter(
    "{request}",
    "Requests with an idempotency key: first, replayed, conflict (another body), in_progress (the first one is still running)",
    ["result"],
  ),
  "todoke.audit.violations.current": gauge(
    "{violation}",
    "Violations that the last audit found, at most 20 of each rule; missing before the first audit",
    ["service"],
  ),
  "todoke.retention.removed": counter("{row}", "Finished rows deleted by age", ["table"]),
} satisfies MetricCatalogue;

export const logFields = {
  /** The service that writes the line, and its version. */
  service: "service",
  version: "version",
  /** The number of the process, if the command runs several. */
  process: "process",
  requestId: "request_id",
  traceId: "trace_id",
  spanId: "span_id",
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
