/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import type { Claims, Settlement } from "@todoke/kernel/claims";
import { counter, createMeters, histogram, type MetricCatalogue, processGauge } from "@todoke/kernel/telemetry";
import { tableGauges } from "@todoke/service";

export const notificationGauges = tableGauges("notification", "notification");

export const metricCatalogue = {
  "notification.delivery.total": counter(
    "{attempt}",
    "Attempts to send by result: sent, retry, failed (dead-lettered), released (not attempted)",
    ["result"],
  ),
  "notification.delivery.e2e.delay": histogram("s", "From the event to its notification being sent"),
  "notification.dlq.total": counter("{notification}", "Notifications dead-lettered to notification_dlq"),
  ...notificationGauges.catalogue,
  "notification.streams.current": processGauge("{stream}", "Open streams of user inboxes in this process"),
} satisfies MetricCatalogue;

export const spanNames = {
  /** One attempt to send a notification; child of the event's handling, or of its publishing if a batch was handled. */
  send: "notification send",
} as const;

const { count, observeValue, observeGauges } = createMeters("@todoke/notification", metricCatalogue);

const results = { done: "sent", retry: "retry", dead: "failed", release: "released" } as const;

/** The same claims, with every settlement counted that took effect. */
export function countSettlements<Row>(claims: Claims<Row>): Claims<Row> {
  return {
    ...claims,
    async settle(db, settlements) {
      const applied = await claims.settle(db, settlements);
      settlements.filter((_, index) => applied[index]).forEach(countSettlement);
      return applied;
    },
  };
}

function countSettlement({ outcome }: Settlement): void {
  count("notification.delivery.total", { result: results[outcome.kind] });
  if (outcome.kind === "dead") count("notification.dlq.total", {});
}

/** Counts notifications that were sent without a claim. */
export const countSent = (notifications: number) =>
  count("notification.delivery.total", { result: results.done }, notifications);

export function recordSent(delaySeconds: number): void {
  observeValue("notification.delivery.e2e.delay", delaySeconds, {});
}

export function observeStreams(streams: { readonly size: number }): AsyncDisposable {
  return observeGauges({
    gauges: ["notification.streams.current"],
    read: () => [{ name: "notification.streams.current", value: streams.size }],
    intervalMs: 0, // Reading costs nothing.
  });
}
