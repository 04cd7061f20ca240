/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import { inSpan, type MetricCatalogue, metersOf, resultOf } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "account.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by result: applied, replayed, conflict, refused (a retry cannot succeed), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  ...outboxMetrics("account").catalogue,
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One command, from submission to commit; child of the request, parent of the publish. */
  command: "account command",
} as const;

const { count } = metersOf("@todoke/account", metricCatalogue);

/** Runs the command in a span and counts its result. */
export function countCommands<Request, Result extends object>(
  action: string,
  command: (request: Request) => Promise<Result>,
): (request: Request) => Promise<Result> {
  const countResult = (result: string) => count("account.command.total", { action, result });
  return (request) =>
    inSpan(spanNames.command, { action }, async () => {
      try {
        const result = await command(request);
        countResult("replayed" in result && result.replayed ? "replayed" : "applied");
        return result;
      } catch (error) {
        countResult(resultOf(error));
        throw error;
      }
    });
}
