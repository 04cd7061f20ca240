/** Metrics, spans and log lines of this service. docs/telemetry.md lists the same names. */
import { hash } from "node:crypto";
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { outboxMetrics } from "@todoke/kernel/outbox";
import {
  counter,
  createMeters,
  gauge,
  histogram,
  inSpan,
  logFields,
  type MetricCatalogue,
  reportResults,
} from "@todoke/kernel/telemetry";
import { startLoop } from "@todoke/kernel/worker";
import { adapterNames } from "./brokers/index.ts";
import type { AcceptOrder } from "./commands/accept-order.ts";
import { selectBacklog, selectWaitingAges } from "./store/backlog.ts";
import type { OrderRow } from "./store/orders.ts";
import { selectPositions } from "./store/positions.ts";
import type { Mismatch } from "./workers/compare-books.ts";
import type { SenderTelemetry } from "./workers/sender-telemetry.ts";

export const metricCatalogue = {
  ...outboxMetrics("orders").catalogue,
  "outbox.enqueued_total": counter("{order}", "Orders accepted"),
  "outbox.sent_total": counter("{order}", "Orders taken by the broker", ["adapter"]),
  "outbox.failed_total": counter(
    "{attempt}",
    "Failed attempts that are retried because the broker does not have the order",
    ["adapter", "code"],
  ),
  "outbox.aborted_total": counter(
    "{order}",
    "Orders that ended without being taken by the broker, by reason: rejected, out of attempts, or cancelled",
    ["adapter", "code"],
  ),
  "outbox.age_seconds": histogram(
    "s",
    "Time since an order was accepted: at its dispatch to the broker (dispatched), and every 10 s while it waits (waiting)",
    ["adapter", "measured"],
  ),
  "orders.accept.total": counter(
    "{request}",
    "Requests to place an order, by result: applied, replayed, conflict, refused, unknown (the COMMIT was lost), failed",
    ["result"],
  ),
  "orders.idempotency.conflict.total": counter(
    "{request}",
    "Requests whose key or order_id was used for another order",
  ),
  "orders.fills.total": counter("{fill}", "Fills recorded for orders that were open at the broker", ["adapter"]),
  "orders.broker.duration": histogram(
    "s",
    "Time from a call of the broker (send, find, cancel, fills) to its reply or the timeout",
    ["adapter", "call", "result"],
  ),
  "orders.broker.clock_drift": gauge("s", "How far the broker's clock is ahead of ours, by its last reply", [
    "adapter",
  ]),
  "orders.open.current": gauge("{order}", "Orders that are open at the broker"),
  "orders.position.current": gauge("1", "Bought minus sold, by the fills", ["adapter", "instrument"]),
  "orders.open_notional.current": gauge("1", "What open orders are worth at their price", ["adapter", "instrument"]),
  "orders.backlog.current": gauge(
    "{order}",
    "Orders that have not ended, by status: pending, sending, failed (waiting for a retry)",
    ["status"],
  ),
  "orders.backlog.age": gauge("s", "Age of the first order to be sent; 0 if there is none"),
  "orders.unresolved.current": gauge("{order}", "Unresolved orders: sent, neither confirmed nor denied by the broker"),
  "orders.unresolved.age": gauge("s", "Time since the oldest unresolved order became unresolved; 0 if there is none"),
  "orders.reconciliation.mismatch.current": gauge(
    "{order}",
    "Orders that differ between us and the configured broker (ORDERS_BROKER), by the last reconciliation",
  ),
  "orders.reconciliation.age": gauge(
    "s",
    "Time since the last reconciliation with the configured broker; if there was none, since the first order",
  ),
} satisfies MetricCatalogue;

export const spanNames = {
  /** One request to place an order, from the batcher to the commit; parent of the send and of the events. */
  accept: "order accept",
} as const;

const { count, observeValue, observeDuration, observeGauges } = createMeters("@todoke/orders", metricCatalogue);

export const countAccepted = (orders: number): void => count("outbox.enqueued_total", {}, orders);

/** Wraps the command in a span and counts its result. */
export const countCommands = (accept: AcceptOrder): AcceptOrder => {
  const counted = reportResults(accept, (result) => {
    count("orders.accept.total", { result });
    if (result === "conflict") count("orders.idempotency.conflict.total", {});
  });
  return (request) => inSpan(spanNames.accept, { instrument: request.order.instrument }, () => counted(request));
};

/** Counts and logs a transition, by whichever worker or command made it. */
const recordTransition =
  (adapter: string, log: HttpApp["log"]): SenderTelemetry["transitioned"] =>
  ({ idempotencyKey, attempts }, { to, code }) => {
    if (to === "succeeded") count("outbox.sent_total", { adapter });
    else if (to === "failed") count("outbox.failed_total", { adapter, code });
    else if (to === "aborted") count("outbox.aborted_total", { adapter, code });
    const line = {
      [logFields.idempotencyKey]: hash("sha256", idempotencyKey, "hex"),
      status: to,
      attempts,
      last_error_code: code,
      adapter,
    };
    if (to === "succeeded" || code === "CANCELLED") log.info(line, "order");
    else log.warn(line, "order");
  };

export const senderTelemetry = (adapter: string, log: HttpApp["log"]): SenderTelemetry => ({
  transitioned: recordTransition(adapter, log),
  brokerCalled: (call, result, startedAt) =>
    observeDuration("orders.broker.duration", startedAt, { adapter, call, result }),
  dispatched: (ageMs) => observeValue("outbox.age_seconds", ageMs / 1_000, { adapter, measured: "dispatched" }),
  filled: (fills) => count("orders.fills.total", { adapter }, fills),
});

// Several samples in every window of an alert, and cheap beside one order per second.
const waitingIntervalMs = 10_000;

/** Measures orders that wait, until disposed: an order that no worker sends is never measured at its dispatch. */
export const observeWaiting = ({ db, onError }: Pick<ObserveOptions, "db" | "onError">): AsyncDisposable =>
  startLoop(() => measureWaiting(db), {
    intervalMs: waitingIntervalMs,
    task: "measuring the age of waiting orders",
    onError,
  });

export async function measureWaiting(db: Db): Promise<void> {
  for (const { adapter, ageMs } of await selectWaitingAges(db, adapterNames))
    observeValue("outbox.age_seconds", ageMs / 1_000, { adapter, measured: "waiting" });
}

/** Records an order that its caller cancelled before it was sent. */
export const recordCancelled =
  (log: HttpApp["log"]) =>
  ({ adapter, idempotency_key: idempotencyKey, attempts }: OrderRow): void =>
    recordTransition(adapter, log)({ idempotencyKey, attempts }, { to: "aborted", code: "CANCELLED" });

// The table reconciliations has more.
const mismatchesLogged = 10;

export const logMismatches =
  (adapter: string, log: HttpApp["log"]) =>
  (mismatches: readonly Mismatch[]): void => {
    if (mismatches.length === 0) return;
    const first = mismatches.slice(0, mismatchesLogged);
    log.error({ adapter, mismatches: mismatches.length, first }, "mismatches with the broker");
  };

/** The last measured drift, as a gauge until disposed. */
export function observeClockDrift(adapter: string): AsyncDisposable & { record(driftMs: number): void } {
  let last: number | undefined;
  const gauges = observeGauges({
    gauges: ["orders.broker.clock_drift"],
    intervalMs: 0,
    read: () =>
      last === undefined ? [] : [{ name: "orders.broker.clock_drift", value: last / 1_000, attributes: { adapter } }],
  });
  return {
    record: (driftMs) => {
      last = driftMs;
    },
    [Symbol.asyncDispose]: () => gauges[Symbol.asyncDispose](),
  };
}

export interface ObserveOptions {
  readonly db: Db;
  /** The configured broker. */
  readonly adapter: string;
  readonly onError: (error: unknown) => void;
}

// Each is a time series. An installation with more instruments reads the others from the API.
const positionsMax = 1_000;

export const observeOrders = ({ db, adapter, onError }: ObserveOptions): AsyncDisposable =>
  observeGauges({
    gauges: [
      "orders.open.current",
      "orders.position.current",
      "orders.open_notional.current",
      "orders.backlog.current",
      "orders.backlog.age",
      "orders.unresolved.current",
      "orders.unresolved.age",
      "orders.reconciliation.mismatch.current",
      "orders.reconciliation.age",
    ],
    onError,
    read: async () => {
      const positions = await selectPositions(db, { after: undefined, limit: positionsMax });
      const { pending, sending, failed, unknown, ...backlog } = await selectBacklog(db, {
        adapter,
        adapters: adapterNames,
      });
      return [
        ...positions.flatMap(({ adapter, instrument, position, open_notional }) => [
          { name: "orders.position.current", value: Number(position), attributes: { adapter, instrument } } as const,
          {
            name: "orders.open_notional.current",
            value: Number(open_notional),
            attributes: { adapter, instrument },
          } as const,
        ]),
        { name: "orders.open.current", value: backlog.open },
        { name: "orders.backlog.current", value: pending, attributes: { status: "pending" } },
        { name: "orders.backlog.current", value: sending, attributes: { status: "sending" } },
        { name: "orders.backlog.current", value: failed, attributes: { status: "failed" } },
        { name: "orders.backlog.age", value: backlog.oldestPendingMs / 1_000 },
        { name: "orders.unresolved.current", value: unknown },
        { name: "orders.unresolved.age", value: backlog.oldestUnresolvedMs / 1_000 },
        { name: "orders.reconciliation.mismatch.current", value: backlog.mismatches },
        { name: "orders.reconciliation.age", value: backlog.sinceReconciledMs / 1_000 },
      ];
    },
  });
