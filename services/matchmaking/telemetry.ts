/** The metrics of this service. docs/telemetry.md lists the same ones. */
import { CommitUnknown, isUnavailable } from "@todoke/kernel/db";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { counter, createMeters, gauge, histogram, type MetricCatalogue } from "@todoke/kernel/telemetry";
import { RedisUnavailable } from "@todoke/redis";
import type { QueueStatus } from "./queue/index.ts";
import type { RecordedEnd } from "./queue/record-ends.ts";
import type { TicketEnd } from "./queue/ticket.ts";

export const metricCatalogue = {
  ...outboxMetrics("matchmaking").catalogue,
  "matchmaking.time_to_match": histogram("s", "Time from join to match of each ticket, by the queue's clock", ["mode"]),
  "matchmaking.queue.depth": gauge("{ticket}", "Waiting tickets", ["mode"]),
  "matchmaking.queue.oldest_age": gauge("s", "Age of the oldest waiting ticket; 0 if there is none", ["mode"]),
  "matchmaking.ends.backlog": gauge("{end}", "Ends of tickets that are in Redis and not recorded in PostgreSQL yet", [
    "mode",
  ]),
  "matchmaking.match.total": counter(
    "{match}",
    "Matches by result: made (recorded), void (one of its tickets had ended before)",
    ["mode", "result"],
  ),
  "matchmaking.ticket.total": counter(
    "{ticket}",
    "Tickets by result: joined, replayed, open (created before), cancelled, expired, damaged",
    ["mode", "result"],
  ),
  "matchmaking.dependency.error.total": counter(
    "{error}",
    "Requests, account events, and passes of the matcher and the recorder that failed because redis or postgres was unavailable",
    ["type"],
  ),
} satisfies MetricCatalogue;

const { count, observeValue, observeGauges } = createMeters("@todoke/matchmaking", metricCatalogue);

export const countTicket = (mode: string, result: string): void => count("matchmaking.ticket.total", { mode, result });

const countMatch = (mode: string, result: "made" | "void"): void => count("matchmaking.match.total", { mode, result });

/** Counts recorded ends. A duplicate was counted when it was recorded. */
export function countEnds(ends: readonly RecordedEnd[]): void {
  for (const { end, result } of ends) {
    if (result.kind === "recorded") countEnd(end);
    else if (result.kind === "void" && end.kind === "match") countMatch(end.match.mode, "void");
  }
}

function countEnd(end: TicketEnd): void {
  if (end.kind !== "match") {
    countTicket(end.kind === "damaged" ? end.mode : end.ticket.mode, end.kind);
    return;
  }
  const { mode, matchedAt, seats } = end.match;
  countMatch(mode, "made");
  for (const { ticket } of seats)
    observeValue("matchmaking.time_to_match", (matchedAt - ticket.joinedAt) / 1_000, { mode });
}

/** Counts an error that an unavailable Redis or PostgreSQL caused, and no other. */
export function countDependencyError(error: unknown): void {
  const type = unavailableDependency(error);
  if (type) count("matchmaking.dependency.error.total", { type });
}

function unavailableDependency(error: unknown): "redis" | "postgres" | undefined {
  if (error instanceof RedisUnavailable) return "redis";
  if (error instanceof CommitUnknown) return "postgres";
  if (!(error instanceof Error)) return undefined;
  return unavailableDependency(error.cause) ?? (isUnavailable(error) ? "postgres" : undefined);
}

/** The same commands, with their dependency errors counted. */
export function countCommandErrors<Commands extends object>(commands: Commands): Commands {
  const counted = Object.entries(commands).map(([name, command]) => [
    name,
    async (...request: unknown[]) => {
      try {
        return await command(...request);
      } catch (error) {
        countDependencyError(error);
        throw error;
      }
    },
  ]);
  return Object.fromEntries(counted);
}

/** Observes the ends that the recorders have not recorded yet. */
export function observeEndsBacklog(
  backlog: () => Promise<ReadonlyMap<string, number>>,
  onError: (error: unknown) => void,
): AsyncDisposable {
  const name = "matchmaking.ends.backlog";
  return observeGauges({
    gauges: [name],
    onError,
    read: async () => [...(await backlog())].map(([mode, value]) => ({ name, value, attributes: { mode } }) as const),
  });
}

// A matcher sweeps every few seconds; an older value says nothing about the queue now.
const staleMs = 60_000;

/** Gauges of the queues, as a matcher of this process saw them last. */
export function queueGauges() {
  const seen = new Map<string, { readonly state: QueueStatus; readonly at: number }>();
  return {
    record: (mode: string, state: QueueStatus): void => void seen.set(mode, { state, at: performance.now() }),
    observe: (): AsyncDisposable =>
      observeGauges({
        gauges: ["matchmaking.queue.depth", "matchmaking.queue.oldest_age"],
        intervalMs: 1_000,
        read: () =>
          [...seen].flatMap(([mode, { state, at }]) => {
            const ageMs = performance.now() - at;
            if (ageMs > staleMs) return [];
            const oldestAge = state.oldestMs === undefined ? 0 : (state.oldestMs + ageMs) / 1_000;
            return [
              { name: "matchmaking.queue.depth", value: state.waiting, attributes: { mode } },
              { name: "matchmaking.queue.oldest_age", value: oldestAge, attributes: { mode } },
            ] as const;
          }),
      }),
  };
}
