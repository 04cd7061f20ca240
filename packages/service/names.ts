/** Every metric that a process of a service has, named by OpenTelemetry's semantic conventions. */
import type { MetricCatalogue } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "db.client.connection.count": {
    kind: "gauge",
    unit: "{connection}",
    description: "Connections of the pool to PostgreSQL, by state: idle or used",
    attributes: ["db.client.connection.pool.name", "db.client.connection.state"],
  },
  "db.client.connection.pending_requests": {
    kind: "gauge",
    unit: "{request}",
    description: "Requests that wait for a connection of the pool",
    attributes: ["db.client.connection.pool.name"],
  },
  "nodejs.eventloop.delay.p99": {
    kind: "gauge",
    unit: "s",
    description: "Event loop delay, 99th percentile of the last seconds",
    attributes: [],
  },
} as const satisfies MetricCatalogue;
