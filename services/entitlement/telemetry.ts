/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import { inSpan, type MetricCatalogue, metersOf, resultOf } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "entitlement.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by result: applied, replayed, conflict, refused (a retry cannot succeed), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  ...outboxMetrics("entitlement").catalogue,
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One grant or revoke, from submission to commit; child of the request, parent of the publish. */
  command: "entitlement command",
} as const;

const { count } = metersOf("@todoke/entitlement", metricCatalogue);

/** Runs the command in a span and counts its result. */
export function countCommands<Request, Response extends { readonly replayed: boolean }>(
  action: "grant" | "revoke",
  command: (request: Request) => Promise<Response>,
): (request: Request) => Promise<Response> {
  const countResult = (result: string) => count("entitlement.command.total", { action, result });
  return (request) =>
    inSpan(spanNames.command, { action }, async () => {
      try {
        const response = await command(request);
        countResult(response.replayed ? "replayed" : "applied");
        return response;
      } catch (error) {
        countResult(resultOf(error));
        throw error;
      }
    });
}
