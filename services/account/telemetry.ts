/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { CommitUnknown, type Db } from "@todoke/kernel/db";
import { outboxBacklog } from "@todoke/kernel/outbox";
import { Problem } from "@todoke/kernel/problem";
import { inSpan, type MetricCatalogue, metersOf, watch } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "account.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by what became of them: applied, replayed, conflict, refused (it can never be), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  "account.outbox.publish.delay": {
    kind: "histogram",
    unit: "s",
    description: "From the event's row being written to the bus having stored it",
    attributes: [],
  },
  "account.outbox.backlog": {
    kind: "gauge",
    unit: "{event}",
    description: "Events that are not published yet: pending, or in_flight with a relay",
    attributes: ["status"],
  },
  "account.outbox.backlog.age": {
    kind: "gauge",
    unit: "s",
    description: "Age of the oldest event that a relay could publish now",
    attributes: [],
  },
  "account.outbox.failed.current": {
    kind: "gauge",
    unit: "{event}",
    description: "Events that are FAILED and wait for somebody to redrive them",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One command, from being handed over to being committed; child of the request, parent of the publish. */
  command: "account command",
} as const;

const scope = "@todoke/account";
const { count, observeValue } = metersOf(scope, metricCatalogue);

/** The same command, with a span around it and its end counted. */
export function told<Request, Result extends object>(action: string, command: (request: Request) => Promise<Result>) {
  const ended = (result: string) => count("account.command.total", { action, result });
  return (request: Request): Promise<Result> =>
    inSpan(spanNames.command, { action }, async () => {
      try {
        const result = await command(request);
        ended("replayed" in result && result.replayed ? "replayed" : "applied");
        return result;
      } catch (error) {
        ended(resultOf(error));
        throw error;
      }
    });
}

function resultOf(error: unknown): string {
  if (error instanceof CommitUnknown) return "unknown";
  if (!(error instanceof Problem)) return "failed";
  if (error.status === 409 || error.status === 412) return "conflict";
  return error.status < 500 ? "refused" : "failed";
}

export function tellPublished(_event: unknown, delaySeconds: number): void {
  observeValue("account.outbox.publish.delay", delaySeconds, {});
}

export function watchOutbox(db: Db, onError: (error: unknown) => void): AsyncDisposable {
  return watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["account.outbox.backlog", "account.outbox.backlog.age", "account.outbox.failed.current"],
    onError,
    async read() {
      const { pending, inFlight, failed, oldestClaimableMs } = await outboxBacklog(db);
      return [
        { name: "account.outbox.backlog", value: pending, attributes: { status: "pending" } },
        { name: "account.outbox.backlog", value: inFlight, attributes: { status: "in_flight" } },
        { name: "account.outbox.backlog.age", value: oldestClaimableMs / 1_000 },
        { name: "account.outbox.failed.current", value: failed },
      ] as const;
    },
  });
}
