/** Every metric of the edge, named by OpenTelemetry's semantic conventions. */
import type { MetricCatalogue } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "http.server.request.duration": {
    kind: "histogram",
    unit: "s",
    description: "From the request's headers being read to its answer being sent; 499: the caller had hung up",
    attributes: ["http.request.method", "http.route", "http.response.status_code"],
  },
} as const satisfies MetricCatalogue;
