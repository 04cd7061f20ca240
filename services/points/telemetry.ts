/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import type { Db } from "@todoke/kernel/db";
import type { Answer } from "@todoke/kernel/idempotency";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { type MetricCatalogue, metersOf, resultOf, watch } from "@todoke/kernel/telemetry";
import type { ChangePoints } from "./commands/change-points.ts";
import type { Cancel, Reserve } from "./reservations/index.ts";
import { selectBacklog } from "./reservations/store/due.ts";

export const metricCatalogue = {
  ...outboxMetrics("points").catalogue,
  "points.change.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands to add, spend, hold, capture, release and refund points, by what became of them: applied, replayed, conflict (too few points are one), refused, unknown (the COMMIT was lost), failed",
    attributes: ["kind", "result"],
  },
  "points.reservation.total": {
    kind: "counter",
    unit: "{reservation}",
    description: "Requests to reserve and to cancel, by what became of them: as points.change.total",
    attributes: ["action", "result"],
  },
  "points.reservation.delay": {
    kind: "histogram",
    unit: "s",
    description: "From a reservation being due (or booked, where it was due already) to its points being granted",
    attributes: [],
  },
  "points.reservation.backlog": {
    kind: "gauge",
    unit: "{reservation}",
    description: "Reservations that are due and not granted: due (still PENDING), processing; counted up to 100,000",
    attributes: ["status"],
  },
  "points.reservation.backlog.age": {
    kind: "gauge",
    unit: "s",
    description: "How long the reservation has been due that has been due longest and is not granted; 0 when none is",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

const scope = "@todoke/points";
const { count, observeValue } = metersOf(scope, metricCatalogue);

/** The same commands, each with its end counted. */
export const toldChange =
  (change: ChangePoints): ChangePoints =>
  (key, wanted) =>
    counted(change(key, wanted), (result) => count("points.change.total", { kind: wanted.kind, result }));

export const toldReserve =
  (reserve: Reserve): Reserve =>
  (reservation) =>
    counted(reserve(reservation), (result) => count("points.reservation.total", { action: "reserve", result }));

export const toldCancel =
  (cancel: Cancel): Cancel =>
  (id, key) =>
    counted(cancel(id, key), (result) => count("points.reservation.total", { action: "cancel", result }));

async function counted(answer: Promise<Answer>, tell: (result: string) => void): Promise<Answer> {
  try {
    const { replayed } = await answer;
    tell(replayed ? "replayed" : "applied");
  } catch (error) {
    tell(resultOf(error));
  }
  return answer;
}

/** After the commit: how late each was. */
export function tellGranted(delaysMs: readonly number[]): void {
  for (const delayMs of delaysMs) observeValue("points.reservation.delay", delayMs / 1_000, {});
}

export const watchReservations = (db: Db, onError: (error: unknown) => void): AsyncDisposable =>
  watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["points.reservation.backlog", "points.reservation.backlog.age"],
    onError,
    read: async () => {
      const { due, processing, oldestMs } = await selectBacklog(db);
      return [
        { name: "points.reservation.backlog", value: due, attributes: { status: "due" } },
        { name: "points.reservation.backlog", value: processing, attributes: { status: "processing" } },
        { name: "points.reservation.backlog.age", value: oldestMs / 1_000 },
      ];
    },
  });
