/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import type { Claims, Settlement } from "@todoke/kernel/claims";
import { type MetricCatalogue, metersOf, watch } from "@todoke/kernel/telemetry";
import { tableGauges } from "@todoke/service";

export const notificationGauges = tableGauges("notification", "notification");

export const metricCatalogue = {
  "notification.delivery.total": {
    kind: "counter",
    unit: "{attempt}",
    description: "Attempts to send by result: sent, retry, failed (dead-lettered), released (not attempted)",
    attributes: ["result"],
  },
  "notification.delivery.e2e.delay": {
    kind: "histogram",
    unit: "s",
    description: "From the event to its notification being sent",
    attributes: [],
  },
  "notification.dlq.total": {
    kind: "counter",
    unit: "{notification}",
    description: "Notifications dead-lettered to notification_dlq",
    attributes: [],
  },
  ...notificationGauges.catalogue,
  "notification.streams.current": {
    kind: "gauge",
    unit: "{stream}",
    description: "Open streams of user inboxes in this process",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One attempt to send a notification; child of the event's handling, or of its publishing if a batch was handled. */
  send: "notification send",
} as const;

const scope = "@todoke/notification";
const { count, observeValue } = metersOf(scope, metricCatalogue);

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

export function recordSent(delaySeconds: number): void {
  observeValue("notification.delivery.e2e.delay", delaySeconds, {});
}

export function observeStreams(streams: { readonly size: number }): AsyncDisposable {
  return watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["notification.streams.current"],
    read: () => [{ name: "notification.streams.current", value: streams.size }],
    everyMs: 0, // Reading costs nothing.
  });
}
