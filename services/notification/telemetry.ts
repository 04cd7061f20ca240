/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import type { Claims, Settlement } from "@todoke/kernel/claims";
import { type MetricCatalogue, metersOf, watch } from "@todoke/kernel/telemetry";
import { tableGauges } from "@todoke/service";

export const notificationGauges = tableGauges("notification", "notification");

export const metricCatalogue = {
  "notification.delivery.total": {
    kind: "counter",
    unit: "{try}",
    description: "Tries to send by what became of them: sent, retry, failed (given up), released (not tried)",
    attributes: ["result"],
  },
  "notification.delivery.e2e.delay": {
    kind: "histogram",
    unit: "s",
    description: "From the event having occurred to its notification being sent",
    attributes: [],
  },
  "notification.dlq.total": {
    kind: "counter",
    unit: "{notification}",
    description: "Notifications put into notification_dlq",
    attributes: [],
  },
  ...notificationGauges.catalogue,
  "notification.streams.current": {
    kind: "gauge",
    unit: "{stream}",
    description: "Clients that follow an inbox live at this process",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One try to send a notification; child of the event's handling, or of its publishing where many were handled at once. */
  send: "notification send",
} as const;

const scope = "@todoke/notification";
const { count, observeValue } = metersOf(scope, metricCatalogue);

const results = { done: "sent", retry: "retry", dead: "failed", release: "released" } as const;

/** The same table, with every outcome counted that is in the database: an outcome whose lease was lost is none. */
export function counted<Row>(claims: Claims<Row>): Claims<Row> {
  return {
    ...claims,
    async settle(db, settlements) {
      const won = await claims.settle(db, settlements);
      settlements.filter((_, place) => won[place]).forEach(tellSettled);
      return won;
    },
  };
}

function tellSettled({ outcome }: Settlement): void {
  count("notification.delivery.total", { result: results[outcome.kind] });
  if (outcome.kind === "dead") count("notification.dlq.total", {});
}

export function tellSent(delaySeconds: number): void {
  observeValue("notification.delivery.e2e.delay", delaySeconds, {});
}

export function watchStreams(live: { readonly size: number }): AsyncDisposable {
  return watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["notification.streams.current"],
    read: () => [{ name: "notification.streams.current", value: live.size }],
    everyMs: 0, // It asks nobody.
  });
}
