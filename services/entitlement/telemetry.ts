/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import { inSpan, type MetricCatalogue, metersOf, resultOf } from "@todoke/kernel/telemetry";
import type { ChangeEntitlement } from "./commands/change-entitlement.ts";

export const metricCatalogue = {
  "entitlement.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by what became of them: applied, replayed, conflict, refused (it can never be), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  ...outboxMetrics("entitlement").catalogue,
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One grant or revoke, from being gathered to being committed; child of the request, parent of the publish. */
  command: "entitlement command",
} as const;

const { count } = metersOf("@todoke/entitlement", metricCatalogue);

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
