/** The metrics of this service; docs/telemetry.md lists the same. */
import type { Db } from "@todoke/kernel/db";
import type { CommandResponse } from "@todoke/kernel/idempotency";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { counter, createMeters, gauge, histogram, type MetricCatalogue, reportResults } from "@todoke/kernel/telemetry";
import { selectBacklog } from "./store/dispatch-reservations.ts";

export const metricCatalogue = {
  ...outboxMetrics("points").catalogue,
  "points.change.total": counter(
    "{command}",
    "Commands that add, spend, hold, capture, release or refund points, by result: applied, replayed, conflict (including insufficient points), refused, unknown (the COMMIT was lost), failed",
    ["kind", "result"],
  ),
  "points.reservation.total": counter(
    "{reservation}",
    "Commands that reserve or cancel, by result: as points.change.total",
    ["action", "result"],
  ),
  "points.reservation.delay": histogram(
    "s",
    "Delay from the time a reservation is due, or created if that is later, to its grant",
  ),
  "points.reservation.backlog": gauge(
    "{reservation}",
    "Reservations that are due and not granted: due (still PENDING), processing; counted up to 100,000",
    ["status"],
  ),
  "points.reservation.backlog.age": gauge(
    "s",
    "Age of the oldest due reservation that is not granted; 0 if there is none",
  ),
} satisfies MetricCatalogue;

const { count, observeValue, observeGauges } = createMeters("@todoke/points", metricCatalogue);

type Command<Args extends unknown[]> = (...args: Args) => Promise<CommandResponse>;

export const countChanges = <Args extends unknown[]>(kind: string, command: Command<Args>): Command<Args> =>
  reportResults(command, (result) => count("points.change.total", { kind, result }));

export const countReservations = <Args extends unknown[]>(action: string, command: Command<Args>): Command<Args> =>
  reportResults(command, (result) => count("points.reservation.total", { action, result }));

/** Called after the commit. */
export function recordGrantDelays(delaysMs: readonly number[]): void {
  for (const delayMs of delaysMs) observeValue("points.reservation.delay", delayMs / 1_000, {});
}

export const observeReservations = (db: Db, onError: (error: unknown) => void): AsyncDisposable =>
  observeGauges({
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
