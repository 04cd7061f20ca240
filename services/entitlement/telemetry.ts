/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { CommitUnknown, type Db } from "@todoke/kernel/db";
import { outboxBacklog } from "@todoke/kernel/outbox";
import { Problem } from "@todoke/kernel/problem";
import { inSpan, type MetricCatalogue, metersOf, watch } from "@todoke/kernel/telemetry";
import type { ChangeEntitlement } from "./commands/change-entitlement.ts";

export const metricCatalogue = {
  "entitlement.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by what became of them: applied, replayed, conflict, refused (it can never be), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  "entitlement.outbox.publish.delay": {
    kind: "histogram",
    unit: "s",
    description: "From the event's row being written to the bus having stored it",
    attributes: [],
  },
  "entitlement.outbox.backlog": {
    kind: "gauge",
    unit: "{event}",
    description: "Events that are not published yet: pending, or in_flight with a relay",
    attributes: ["status"],
  },
  "entitlement.outbox.backlog.age": {
    kind: "gauge",
    unit: "s",
    description: "Age of the oldest event that a relay could publish now",
    attributes: [],
  },
  "entitlement.outbox.failed.current": {
    kind: "gauge",
    unit: "{event}",
    description: "Events that are FAILED and wait for somebody to redrive them",
    attributes: [],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One grant or revoke, from being gathered to being committed; child of the request, parent of the publish. */
  command: "entitlement command",
} as const;

const scope = "@todoke/entitlement";
const { count, observeValue } = metersOf(scope, metricCatalogue);

/** The same command, with a span around it and its end counted. */
export function told(change: ChangeEntitlement): ChangeEntitlement {
  return (command) => {
    const action = command.status === "ACTIVE" ? "grant" : "revoke";
    const ended = (result: string) => count("entitlement.command.total", { action, result });
    return inSpan(spanNames.command, { action }, async () => {
      try {
        const answer = await change(command);
        ended(answer.replayed ? "replayed" : "applied");
        return answer;
      } catch (error) {
        ended(resultOf(error));
        throw error;
      }
    });
  };
}

function resultOf(error: unknown): string {
  if (error instanceof CommitUnknown) return "unknown";
  if (!(error instanceof Problem)) return "failed";
  if (error.status === 409) return "conflict";
  return error.status < 500 ? "refused" : "failed";
}

export function tellPublished(_event: unknown, delaySeconds: number): void {
  observeValue("entitlement.outbox.publish.delay", delaySeconds, {});
}

export function watchOutbox(db: Db, onError: (error: unknown) => void): AsyncDisposable {
  return watch({
    scope,
    catalogue: metricCatalogue,
    gauges: ["entitlement.outbox.backlog", "entitlement.outbox.backlog.age", "entitlement.outbox.failed.current"],
    onError,
    read: () => readOutbox(db),
  });
}

export async function readOutbox(db: Db) {
  const { pending, inFlight, failed, oldestClaimableMs } = await outboxBacklog(db);
  return [
    { name: "entitlement.outbox.backlog", value: pending, attributes: { status: "pending" } },
    { name: "entitlement.outbox.backlog", value: inFlight, attributes: { status: "in_flight" } },
    { name: "entitlement.outbox.backlog.age", value: oldestClaimableMs / 1_000 },
    { name: "entitlement.outbox.failed.current", value: failed },
  ] as const;
}
