/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { CommitUnknown, isUnavailable } from "@todoke/kernel/db";
import type { Answer } from "@todoke/kernel/idempotency";
import { outboxMetrics } from "@todoke/kernel/outbox";
import { type MetricCatalogue, metersOf, watch } from "@todoke/kernel/telemetry";
import { RedisUnavailable } from "@todoke/redis";
import type { JoinQueue } from "./commands/join-queue.ts";
import type { Swept } from "./queue/index.ts";
import type { RecordedEnd } from "./store/ends.ts";
import type { TicketEnd } from "./tickets.ts";

export const metricCatalogue = {
  ...outboxMetrics("matchmaking").catalogue,
  "mm.time_to_match": {
    kind: "histogram",
    unit: "s",
    description: "From joining to being matched, of each ticket, by the queue's clock",
    attributes: ["mode"],
  },
  "mm.queue.depth": { kind: "gauge", unit: "{ticket}", description: "Tickets that wait", attributes: ["mode"] },
  "mm.queue.oldest_age": {
    kind: "gauge",
    unit: "s",
    description: "How long the one has waited that waits longest; 0 when nobody does",
    attributes: ["mode"],
  },
  "mm.ends.backlog": {
    kind: "gauge",
    unit: "{end}",
    description: "Ends of tickets that are in Redis and not on record in PostgreSQL yet",
    attributes: ["mode"],
  },
  "mm.match.total": {
    kind: "counter",
    unit: "{match}",
    description: "Matches by what became of them: made (and on record), void (a ticket of it had ended otherwise)",
    attributes: ["mode", "result"],
  },
  "mm.ticket.total": {
    kind: "counter",
    unit: "{ticket}",
    description: "Tickets: joined, replayed, open (there before), cancelled, expired, damaged (no ticket any more)",
    attributes: ["mode", "result"],
  },
  "mm.dependency.error.total": {
    kind: "counter",
    unit: "{error}",
    description:
      "Requests, events of account, and looks of the matcher and the recorder, that failed because redis or postgres was away",
    attributes: ["type"],
  },
} as const satisfies MetricCatalogue;

const scope = "@todoke/matchmaking";
const { count, observeValue } = metersOf(scope, metricCatalogue);

/** The same command, with its end counted. */
export function toldJoin(join: JoinQueue): JoinQueue {
  return async (request) => {
    const answer = await join(request);
    count("mm.ticket.total", { mode: request.mode, result: resultOf(answer) });
    return answer;
  };
}

function resultOf({ status, replayed }: Answer): string {
  if (replayed) return "replayed";
  return status === 201 ? "joined" : "open";
}

/** Ends, and what PostgreSQL made of each. What was on record before has been told. */
export function tellRecorded(ends: readonly RecordedEnd[]): void {
  for (const { end, recorded } of ends) {
    if (recorded.kind === "recorded") tellEnd(end);
    else if (recorded.kind === "void" && end.kind === "match")
      count("mm.match.total", { mode: end.match.mode, result: "void" });
  }
}

function tellEnd(end: TicketEnd): void {
  if (end.kind !== "match") {
    const mode = end.kind === "damaged" ? end.mode : end.ticket.mode;
    count("mm.ticket.total", { mode, result: end.kind });
    return;
  }
  const { mode, matchedAt, seats } = end.match;
  count("mm.match.total", { mode, result: "made" });
  for (const { ticket } of seats) observeValue("mm.time_to_match", (matchedAt - ticket.joinedAt) / 1_000, { mode });
}

/** Counts an error whose cause is that something was away; others are no news about Redis or PostgreSQL. */
export function tellDependencyError(error: unknown): void {
  const type = dependencyOf(error);
  if (type) count("mm.dependency.error.total", { type });
}

function dependencyOf(error: unknown): "redis" | "postgres" | undefined {
  if (error instanceof RedisUnavailable) return "redis";
  if (error instanceof CommitUnknown) return "postgres";
  if (!(error instanceof Error)) return undefined;
  return dependencyOf(error.cause) ?? (isUnavailable(error) ? "postgres" : undefined);
}

/** The same commands; what they fail of is counted. */
export function countingFailures<Commands extends object>(commands: Commands): Commands {
  const counted = Object.entries(commands).map(([name, command]) => [
    name,
    async (...request: unknown[]) => {
      try {
        return await command(...request);
      } catch (error) {
        tellDependencyError(error);
        throw error;
      }
    },
  ]);
  return Object.fromEntries(counted);
}

/** What a recorder of this process has before it. */
export function watchEnds(
  backlog: () => Promise<ReadonlyMap<string, number>>,
  onError: (error: unknown) => void,
): AsyncDisposable {
  return watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["mm.ends.backlog"],
    onError,
    read: async () =>
      [...(await backlog())].map(
        ([mode, value]) => ({ name: "mm.ends.backlog", value, attributes: { mode } }) as const,
      ),
  });
}

// A matcher looks every few seconds. What is older tells of a queue that nobody has seen since.
const staleMs = 60_000;

/** How the queues stand, as a matcher of this process saw them last. */
export function queueGauges() {
  const seen = new Map<string, { readonly swept: Swept; readonly at: number }>();
  return {
    tellSwept: (mode: string, swept: Swept): void => void seen.set(mode, { swept, at: performance.now() }),
    watch: (): AsyncDisposable =>
      watch({
        scope,
        catalogue: metricCatalogue,
        gauges: ["mm.queue.depth", "mm.queue.oldest_age"],
        everyMs: 1_000,
        read: () =>
          [...seen].flatMap(([mode, { swept, at }]) => {
            const ageMs = performance.now() - at;
            if (ageMs > staleMs) return [];
            const { waiting, oldestMs } = swept;
            return [
              { name: "mm.queue.depth", value: waiting, attributes: { mode } },
              {
                name: "mm.queue.oldest_age",
                value: oldestMs === undefined ? 0 : (oldestMs + ageMs) / 1_000,
                attributes: { mode },
              },
            ] as const;
          }),
      }),
  };
}
