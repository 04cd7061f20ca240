/** The metrics and spans that only this service has; docs/telemetry.md lists them. */
import { outboxMetrics } from "@todoke/kernel/outbox";
import type { MetricCatalogue } from "@todoke/kernel/telemetry";
import { commandMetrics } from "@todoke/service";

const { catalogue, spanName, countCommands } = commandMetrics("account");

export { countCommands };

export const metricCatalogue = {
  ...catalogue,
  ...outboxMetrics("account").catalogue,
} satisfies MetricCatalogue;

export const spanNames = { command: spanName };
