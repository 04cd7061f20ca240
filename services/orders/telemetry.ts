/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { hash } from "node:crypto";
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { inSpan, logFields, type MetricCatalogue, metersOf, resultOf, watch } from "@todoke/kernel/telemetry";
import { adapterNames } from "./brokers/index.ts";
import type { AcceptOrder } from "./commands/accept-order.ts";
import type { Mismatch, Tell } from "./sender/index.ts";
import { selectBacklog } from "./store/backlog.ts";
import type { OrderRow } from "./store/orders.ts";

export const metricCatalogue = {
  ...outboxMetrics("orders").catalogue,
  "outbox.enqueued_total": {
    kind: "counter",
    unit: "{order}",
    description: "Orders taken in",
    attributes: [],
  },
  "outbox.sent_total": {
    kind: "counter",
    unit: "{order}",
    description: "Orders that the broker has taken",
    attributes: ["adapter"],
  },
  "outbox.failed_total": {
    kind: "counter",
    unit: "{try}",
    description: "Tries after which the broker surely had not taken the order, and which are made again",
    attributes: ["adapter", "code"],
  },
  "outbox.aborted_total": {
    kind: "counter",
    unit: "{order}",
    description: "Orders that ended without having been taken, by why: refused, given up, or cancelled",
    attributes: ["adapter", "code"],
  },
  "outbox.age_seconds": {
    kind: "histogram",
    unit: "s",
    description: "From an order being accepted to its being let go to the broker",
    attributes: ["adapter"],
  },
  "orders.accept.total": {
    kind: "counter",
    unit: "{request}",
    description:
      "Requests to order, by what became of them: applied, replayed, conflict, refused, unknown (the COMMIT was lost), failed",
    attributes: ["result"],
  },
  "orders.idempotency.conflict.total": {
    kind: "counter",
    unit: "{request}",
    description: "Requests whose key was first sent with another order, or whose order_id was",
    attributes: [],
  },
  "orders.broker.duration": {
    kind: "histogram",
    unit: "s",
    description: "From the broker being asked (send, find, cancel) to its answer, or to the end of our patience",
    attributes: ["adapter", "call", "result"],
  },
  "orders.broker.clock_drift": {
    kind: "gauge",
    unit: "s",
    description: "How far the broker's clock is ahead of ours, as its last answer told",
    attributes: ["adapter"],
  },
  "orders.backlog.current": {
    kind: "gauge",
    unit: "{order}",
    description: "Orders that have not ended, by status: pending, sending, failed (to be sent again)",
    attributes: ["status"],
  },
  "orders.backlog.age": {
    kind: "gauge",
    unit: "s",
    description: "How long ago the order was accepted that is the first to be sent; 0 when none waits",
    attributes: [],
  },
  "orders.unresolved.current": {
    kind: "gauge",
    unit: "{order}",
    description: "Orders of which it is not known whether the broker has them",
    attributes: [],
  },
  "orders.unresolved.age": {
    kind: "gauge",
    unit: "s",
    description: "How long the order has been in doubt that has been in doubt longest; 0 when none is",
    attributes: [],
  },
  "orders.reconciliation.mismatch.current": {
    kind: "gauge",
    unit: "{order}",
    description:
      "Orders on which our books and those of the broker in use (ORDERS_BROKER) did not agree at the last look",
    attributes: [],
  },
  "orders.reconciliation.age": {
    kind: "gauge",
    unit: "s",
    description:
      "How long ago our books were last compared with those of the broker in use; since the first order, if they never were",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One request to order, from being gathered to being committed; child of the request, parent of what is sent and told. */
  accept: "order accept",
} as const;

const scope = "@todoke/orders";
const { count, observeValue, observeDuration } = metersOf(scope, metricCatalogue);

export const tellAccepted = (orders: number): void => count("outbox.enqueued_total", {}, orders);

/** The same command, with a span around it and its end counted. */
export const told =
  (accept: AcceptOrder): AcceptOrder =>
  (order) =>
    inSpan(spanNames.accept, { instrument: order.order.instrument }, async () => {
      try {
        const answer = await accept(order);
        count("orders.accept.total", { result: answer.replayed ? "replayed" : "applied" });
        return answer;
      } catch (error) {
        const result = resultOf(error);
        count("orders.accept.total", { result });
        if (result === "conflict") count("orders.idempotency.conflict.total", {});
        throw error;
      }
    });

/** Counts the end of an order and writes a line about it, whoever ended it. */
const endTelling =
  (adapter: string, log: HttpApp["log"]): Tell["ended"] =>
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

/** What a sender tells of its work. */
export const senderTelling = (adapter: string, log: HttpApp["log"]): Tell => ({
  ended: endTelling(adapter, log),
  called: (call, result, startedAt) => observeDuration("orders.broker.duration", startedAt, { adapter, call, result }),
  departed: (ageMs) => observeValue("outbox.age_seconds", ageMs / 1_000, { adapter }),
});

/** Of an order that its caller cancelled before anybody sent it. */
export const cancelTelling =
  (log: HttpApp["log"]) =>
  ({ adapter, idempotency_key: idempotencyKey, attempts }: OrderRow): void =>
    endTelling(adapter, log)({ idempotencyKey, attempts }, { to: "aborted", code: "CANCELLED" });

// As many as one reads in a line; the table reconciliations has more.
const mismatchesLogged = 10;

/** A line for every look that found something. */
export const mismatchTelling =
  (adapter: string, log: HttpApp["log"]) =>
  (mismatches: readonly Mismatch[]): void => {
    if (mismatches.length === 0) return;
    const first = mismatches.slice(0, mismatchesLogged);
    log.error({ adapter, mismatches: mismatches.length, first }, "our books and the broker's do not agree");
  };

/** Drifts as they were last told, until disposed. */
export function watchDrift(adapter: string): AsyncDisposable & { tell(driftMs: number): void } {
  let last: number | undefined;
  const watching = watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["orders.broker.clock_drift"],
    everyMs: 0,
    read: () =>
      last === undefined ? [] : [{ name: "orders.broker.clock_drift", value: last / 1_000, attributes: { adapter } }],
  });
  return {
    tell: (driftMs) => {
      last = driftMs;
    },
    [Symbol.asyncDispose]: () => watching[Symbol.asyncDispose](),
  };
}

export interface WatchOptions {
  readonly db: Db;
  /** The broker in use. */
  readonly adapter: string;
  readonly onError: (error: unknown) => void;
}

export const watchOrders = ({ db, adapter, onError }: WatchOptions): AsyncDisposable =>
  watch({
    scope,
    catalogue: metricCatalogue,
    gauges: [
      "orders.backlog.current",
      "orders.backlog.age",
      "orders.unresolved.current",
      "orders.unresolved.age",
      "orders.reconciliation.mismatch.current",
      "orders.reconciliation.age",
    ],
    onError,
    read: async () => {
      const { pending, sending, failed, unknown, ...of } = await selectBacklog(db, { adapter, adapters: adapterNames });
      return [
        { name: "orders.backlog.current", value: pending, attributes: { status: "pending" } },
        { name: "orders.backlog.current", value: sending, attributes: { status: "sending" } },
        { name: "orders.backlog.current", value: failed, attributes: { status: "failed" } },
        { name: "orders.backlog.age", value: of.oldestPendingMs / 1_000 },
        { name: "orders.unresolved.current", value: unknown },
        { name: "orders.unresolved.age", value: of.oldestUnresolvedMs / 1_000 },
        { name: "orders.reconciliation.mismatch.current", value: of.mismatches },
        { name: "orders.reconciliation.age", value: of.comparedAgoMs / 1_000 },
      ];
    },
  });
