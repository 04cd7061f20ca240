/** The metrics of this service; docs/telemetry.md lists the same. */
import type { Db } from "@todoke/kernel/db";
import type { Answer } from "@todoke/kernel/idempotency";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { type MetricCatalogue, metersOf, resultOf, watch } from "@todoke/kernel/telemetry";
import { selectBacklog } from "./store/dispatch-reservations.ts";

export const metricCatalogue = {
  ...outboxMetrics("points").catalogue,
  "points.change.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands that add, spend, hold, capture, release or refund points, by result: applied, replayed, conflict (including insufficient points), refused, unknown (the COMMIT was lost), failed",
    attributes: ["kind", "result"],
  },
  "points.reservation.total": {
    kind: "counter",
    unit: "{reservation}",
    description: "Commands that reserve or cancel, by result: as points.change.total",
    attributes: ["action", "result"],
  },
  "points.reservation.delay": {
    kind: "histogram",
    unit: "s",
    description: "Delay from the time a reservation is due, or created if that is later, to its grant",
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
    description: "Age of the oldest due reservation that is not granted; 0 if there is none",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

const scope = "@todoke/points";
const { count, observeValue } = metersOf(scope, metricCatalogue);

type Command<Args extends unknown[]> = (...args: Args) => Promise<Answer>;

export const countChanges = <Args extends unknown[]>(kind: string, command: Command<Args>): Command<Args> =>
  countResults(command, (result) => count("points.change.total", { kind, result }));

export const countReservations = <Args extends unknown[]>(action: string, command: Command<Args>): Command<Args> =>
  countResults(command, (result) => count("points.reservation.total", { action, result }));

function countResults<Args extends unknown[]>(command: Command<Args>, record: (result: string) => void): Command<Args> {
  return async (...args) => {
    try {
      const answer = await command(...args);
      record(answer.replayed ? "replayed" : "applied");
      return answer;
    } catch (error) {
      record(resultOf(error));
      throw error;
    }
  };
}

/** Called after the commit. */
export function recordGrantDelays(delaysMs: readonly number[]): void {
  for (const delayMs of delaysMs) observeValue("points.reservation.delay", delayMs / 1_000, {});
}

export const observeReservations = (db: Db, onError: (error: unknown) => void): AsyncDisposable =>
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
