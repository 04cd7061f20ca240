/** Every metric that the edge names, by OpenTelemetry's semantic conventions. Nothing of the edge is named anywhere else. */
import type { MetricCatalogue } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "http.server.request.duration": {
    kind: "histogram",
    unit: "s",
    description: "From the request's headers being read to its answer being sent; 499: the caller had hung up",
    attributes: ["http.request.method", "http.route", "http.response.status_code"],
  },
  "db.client.connection.count": {
    kind: "gauge",
    unit: "{connection}",
    description: "Connections of the pool to PostgreSQL, by state: idle or used",
    attributes: ["db.client.connection.pool.name", "db.client.connection.state"],
  },
  "db.client.connection.pending_requests": {
    kind: "gauge",
    unit: "{request}",
    description: "Those who wait for a connection of the pool",
    attributes: ["db.client.connection.pool.name"],
  },
  "nodejs.eventloop.delay.p99": {
    kind: "gauge",
    unit: "s",
    description: "How late the event loop runs, 99th percentile of the last seconds",
    attributes: [],
  },
} as const satisfies MetricCatalogue;
