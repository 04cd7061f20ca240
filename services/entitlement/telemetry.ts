/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import type { MetricCatalogue } from "@todoke/kernel/telemetry";
import { commandMetrics } from "@todoke/service";

const { catalogue, spanName, countCommands } = commandMetrics("entitlement");

export { countCommands };

export const metricCatalogue = {
  ...catalogue,
  ...outboxMetrics("entitlement").catalogue,
} satisfies MetricCatalogue;

export const spanNames = { command: spanName };
