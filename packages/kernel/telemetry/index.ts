/**
 * The kernel's metrics, spans and log fields. It uses the OpenTelemetry API only, so a program without an SDK pays nothing.
 *
 * names.ts is the catalogue. docs/telemetry.md lists the same names; a test compares the two.
 */

export { counter, gauge, histogram, type Metric, type MetricCatalogue, processGauge } from "./catalogue.ts";
export type { GaugeValue } from "./gauges.ts";
export { ContextError, eventContext, type LogContext } from "./log-context.ts";
export { count, createMeters, observeDuration, observeGauges, observeValue } from "./metrics.ts";
export { logFields, metricCatalogue, spanNames } from "./names.ts";
export { reportResults } from "./result.ts";
export {
  inSpan,
  isSampled,
  parseTraceContext,
  type StartedSpan,
  startSpan,
  traceHeaders,
  withEventHeaders,
} from "./trace.ts";
