/** The first row: the golden signals of the chosen services. */
import {
  countBy,
  failedRequests,
  maxBy,
  type Panel,
  panel,
  quantiles,
  type Row,
  rate,
  requests,
  shareOf,
} from "./panel.ts";

/** FAILED events, dead-lettered events and FAILED notifications of the chosen services. */
const deadLetters: Panel["targets"] = [
  [`max by (__name__) ({__name__=~"($service)_(outbox_failed|dlq)_current"})`, "{{__name__}}"],
  [`max by (consumer) (todoke_inbox_dead_current{consumer=~"$service"})`, "inbox of {{consumer}}"],
];

export const overview: Row = {
  title: "Overview of $service",
  panels: [
    {
      title: "Firing alerts",
      description: "Each has a section in docs/runbook.md",
      unit: "short",
      stat: true,
      thresholds: [1, 1],
      targets: [[`count(ALERTS{alertname=~"Todoke.+", alertstate="firing"}) or vector(0)`, "alerts"]],
    },
    {
      title: "Targets that are down",
      description: "Processes that Prometheus cannot scrape",
      unit: "short",
      stat: true,
      thresholds: [1, 1],
      targets: [[`count(up{job="todoke"} == 0) or vector(0)`, "down"]],
    },
    {
      title: "Processes by version",
      description: "Two versions: a deploy is under way",
      unit: "short",
      stat: true,
      targets: [[`count by (service_version) (target_info{job="todoke"})`, "{{service_version}}"]],
    },
    {
      title: "Failed requests",
      description: "Share of responses with a 5xx status. Objective: 0.1 % of commands over 28 days",
      unit: "percentunit",
      stat: true,
      thresholds: [0.001, 0.0144],
      targets: [[shareOf(failedRequests, requests()), "5xx"]],
    },
    {
      title: "Oldest waiting work",
      description: "The oldest event, notification, reservation, order or ticket that could be worked now",
      unit: "s",
      stat: true,
      thresholds: [10, 60],
      targets: [[`max({__name__=~"($service)_.*(backlog|oldest)_age_seconds"})`, "age"]],
    },
    {
      title: "Dead letters",
      description: "They had no effect, and wait for a redrive: todoke dead list",
      unit: "short",
      stat: true,
      thresholds: [1, 1],
      targets: [[`sum(${deadLetters.map(([expr]) => expr).join(" or ")}) or vector(0)`, "dead letters"]],
    },
    panel("Rate", "Requests by service", countBy(requests(), ["service"], "reqps")),
    {
      title: "Errors",
      description: "Share of responses with a 5xx status, by service. Objective: 0.1 % of commands over 28 days",
      unit: "percentunit",
      thresholds: [0.001, 0.0144],
      targets: [
        [
          `(sum by (service) (${rate(failedRequests)}) or 0 * sum by (service) (${rate(requests())})) / (sum by (service) (${rate(requests())}) > 0)`,
          "{{service}}",
        ],
      ],
    },
    {
      title: "Duration (p99)",
      description: "By service. Objective: 99 % of commands within 250 ms",
      unit: "s",
      thresholds: [0.25, 1],
      targets: quantiles(`http_server_request_duration_seconds`, ["service"], [0.99]).map(([expr, legend]) => [
        expr.replace("_bucket", '_bucket{service=~"$service"}'),
        legend,
      ]),
    },
    {
      title: "Backlog",
      description: "Events that are not published yet, and other waiting work",
      unit: "short",
      targets: [
        [
          `max by (__name__, status) ({__name__=~"($service)_.*(backlog|backlog_current|queue_depth)"})`,
          "{{__name__}} {{status}}",
        ],
      ],
    },
    {
      title: "Oldest age",
      description: "Of the work that could be done now. Above a minute: no worker runs, or an engine is unavailable",
      unit: "s",
      thresholds: [10, 60],
      targets: [maxBy(`{__name__=~"($service)_.*(backlog|oldest|unresolved)_age_seconds"}`, "__name__")],
    },
    {
      title: "Dead letters",
      description: "They had no effect, and wait for a redrive: todoke dead list",
      unit: "short",
      thresholds: [1, 1],
      targets: deadLetters,
    },
    {
      title: "Saturation: PostgreSQL pool",
      description: "Share of the open connections that are in use, and requests that wait for one",
      unit: "short",
      targets: [
        [
          `sum by (db_client_connection_pool_name) (db_client_connection_count{db_client_connection_pool_name=~"$service", db_client_connection_state="used"})`,
          "{{db_client_connection_pool_name}} used",
        ],
        [
          `sum by (db_client_connection_pool_name) (db_client_connection_pending_requests{db_client_connection_pool_name=~"$service"})`,
          "{{db_client_connection_pool_name}} waiting",
        ],
      ],
    },
    {
      title: "Saturation: event loop delay (p99)",
      description: "By process. At 1 s a process is not ready",
      unit: "s",
      thresholds: [0.1, 0.5],
      targets: [["nodejs_eventloop_delay_p99_seconds", "{{instance}}"]],
    },
    panel(
      "Requests by status",
      "A 4xx is a correct answer; 499: the client disconnected",
      countBy(requests(), ["service", "http_response_status_code"], "reqps"),
    ),
  ],
};
