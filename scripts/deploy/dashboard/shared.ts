/** Rows for what services share: workers, and the servers that they use. */
import { countBy, maxBy, panel, quantiles, type Row, rate } from "./panel.ts";

export const sharedRows: readonly Row[] = [
  {
    title: "Workers",
    panels: [
      panel(
        "Jobs",
        "lease_lost: another worker has claimed the job",
        countBy("todoke_worker_jobs_total", ["worker", "outcome"]),
      ),
      panel("Errors", "Rows are claimed again when their lease expires", {
        unit: "ops",
        targets: [
          [`sum by (worker, step) (${rate("todoke_worker_errors_total")}) or vector(0)`, "{{worker}} {{step}}"],
        ],
      }),
      panel("Claims (p99)", "Duration of one claim, or of one completion", {
        unit: "s",
        thresholds: [0.1, 1],
        targets: quantiles("todoke_worker_claim_duration_seconds", ["worker"], [0.99]),
      }),
      panel("Idempotency keys", "Requests by result", countBy("todoke_idempotency_requests_total", ["result"])),
    ],
  },
  {
    title: "PostgreSQL",
    panels: [
      panel("Connections", "Of all processes together", {
        unit: "short",
        targets: [
          [
            "sum by (db_client_connection_pool_name, db_client_connection_state) (db_client_connection_count)",
            "{{db_client_connection_pool_name}} {{db_client_connection_state}}",
          ],
        ],
      }),
      panel("Requests that wait for a connection", "Of all processes together", {
        unit: "short",
        thresholds: [1, 10],
        targets: [
          [
            "sum by (db_client_connection_pool_name) (db_client_connection_pending_requests)",
            "{{db_client_connection_pool_name}}",
          ],
        ],
      }),
      panel("Rows removed by age", "By table", {
        unit: "ops",
        targets: [[`sum by (table) (${rate("todoke_retention_removed_total")}) or vector(0)`, "{{table}}"]],
      }),
    ],
  },
  {
    title: "Bus: NATS, RabbitMQ or PostgreSQL",
    panels: [
      panel(
        "Events at consumers",
        "dead: dead-lettered, waits for a redrive",
        countBy("todoke_inbox_events_total", ["consumer", "result"]),
      ),
      panel("Batches released because the bus was unavailable", "By relay", {
        unit: "ops",
        targets: [[`sum by (worker) (${rate("todoke_outbox_unavailable_total")}) or vector(0)`, "{{worker}}"]],
      }),
      panel("Events that consumers dead-lettered", "Rows of inbox_dlq that are not redriven", {
        unit: "short",
        thresholds: [1, 1],
        targets: [maxBy("todoke_inbox_dead_current", "consumer")],
      }),
    ],
  },
  {
    title: "Redis",
    panels: [
      panel("Redis or PostgreSQL unavailable for matchmaking", "Requests and passes that failed because of it", {
        unit: "ops",
        targets: [[`sum by (type) (${rate("matchmaking_dependency_error_total")}) or vector(0)`, "{{type}}"]],
      }),
      panel("Ticket ends not recorded yet", "In Redis and not in PostgreSQL; only if matchmaking uses Redis", {
        unit: "short",
        targets: [["max by (mode) (matchmaking_ends_backlog) or vector(0)", "{{mode}}"]],
      }),
    ],
  },
  {
    title: "Broker of orders",
    panels: [
      panel("Replies (p99)", "By call", {
        unit: "s",
        targets: quantiles("orders_broker_duration_seconds", ["call"], [0.99]),
      }),
      panel("Clock", "How far the broker's clock is ahead of ours; 0 for the paper broker, which has none", {
        unit: "s",
        targets: [["max by (adapter) (orders_broker_clock_drift_seconds) or vector(0)", "{{adapter}}"]],
      }),
      panel("Reconciliation: mismatches", "Orders that differ between us and the broker", {
        unit: "short",
        thresholds: [1, 1],
        targets: [["max(orders_reconciliation_mismatch_current)", "mismatches"]],
      }),
      panel(
        "Reconciliation: age of the last",
        "Above five minutes: no reconciler runs, or the broker cannot list its orders",
        {
          unit: "s",
          thresholds: [120, 300],
          targets: [["max(orders_reconciliation_age_seconds)", "age"]],
        },
      ),
    ],
  },
];
