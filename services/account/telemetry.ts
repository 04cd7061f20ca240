/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import { inSpan, type MetricCatalogue, metersOf, resultOf } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "account.command.total": {
    kind: "counter",
    unit: "{command}",
    description:
      "Commands by what became of them: applied, replayed, conflict, refused (it can never be), unknown (the COMMIT was lost), failed",
    attributes: ["action", "result"],
  },
  ...outboxMetrics("account").catalogue,
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One command, from being handed over to being committed; child of the request, parent of the publish. */
  command: "account command",
} as const;

const { count } = metersOf("@todoke/account", metricCatalogue);

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
