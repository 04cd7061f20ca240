/** The panels of the dashboard: an overview, then a row for each service, and for the engines and what the services share. */

type Unit = "reqps" | "ops" | "s" | "short" | "percentunit";

export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  /** Pairs of a PromQL expression and its legend. */
  readonly targets: readonly (readonly [expr: string, legend: string])[];
  /** From here on a value is bad: orange, then red. */
  readonly thresholds?: readonly [warn: number, bad: number];
  /** One number instead of a graph. */
  readonly stat?: true;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const panel = (title: string, description: string, more: Omit<Panel, "title" | "description">): Panel => ({
  title,
  description,
  ...more,
});

const rate = (series: string) => `rate(${series}[$__rate_interval])`;

/** The quantiles of a histogram, by labels. */
const quantiles = (series: string, labels: readonly string[] = [], ps: readonly number[] = [0.5, 0.99]) =>
  ps.map((p): readonly [string, string] => [
    `histogram_quantile(${p}, sum by (${[...labels, "le"].join(", ")}) (${rate(`${series}_bucket`)}))`,
    [`p${p * 100}`, ...labels.map((label) => `{{${label}}}`)].join(" "),
  ]);

const countBy = (series: string, labels: readonly string[], unit: Unit = "ops"): Pick<Panel, "unit" | "targets"> => ({
  unit,
  targets: [[`sum by (${labels.join(", ")}) (${rate(series)})`, labels.map((label) => `{{${label}}}`).join(" ")]],
});

/** Every process of a service reads the same rows, so the largest value is the value. */
const maxBy = (series: string, label: string): readonly [string, string] => [
  `max by (${label}) (${series})`,
  `{{${label}}}`,
];

const requests = (matchers = "") => `http_server_request_duration_seconds_count{service=~"$service"${matchers}}`;
const failedRequests = requests(', http_response_status_code=~"5.."');

/** Without a request the share is 0, not nothing: an empty panel looks like a broken one. */
const shareOf = (bad: string, all: string) => `(sum(${rate(bad)}) or vector(0)) / (sum(${rate(all)}) > 0)`;

/** FAILED events, dead-lettered events and FAILED notifications of the chosen services. */
const deadLetters: Panel["targets"] = [
  [`max by (__name__) ({__name__=~"($service)_(outbox_failed|dlq)_current"})`, "{{__name__}}"],
  [`max by (consumer) (todoke_inbox_dead_current{consumer=~"$service"})`, "inbox of {{consumer}}"],
];

const overview: Row = {
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

/** Panels of a service that emits events. */
const outboxOf = (service: string): Panel[] => [
  {
    title: "From commit to the bus",
    description: "Objective: 99 % within 1 s",
    unit: "s",
    thresholds: [1, 5],
    targets: quantiles(`${service}_outbox_publish_delay_seconds`),
  },
  {
    title: "Events not published yet",
    description: "FAILED events wait for a redrive, and park the later events of their aggregate",
    unit: "short",
    targets: [maxBy(`${service}_outbox_backlog`, "status"), [`max(${service}_outbox_failed_current)`, "FAILED"]],
  },
  {
    title: "Age of the oldest event that waits for publication",
    description: "Above a minute: no relay runs, or the bus is unavailable",
    unit: "s",
    thresholds: [10, 60],
    targets: [[`max(${service}_outbox_backlog_age_seconds)`, "age"]],
  },
];

const requestsOf = (service: string): Panel => {
  const series = `http_server_request_duration_seconds_count{service="${service}"}`;
  const counts = countBy(series, ["http_route", "http_response_status_code"], "reqps");
  return panel("Requests by route and status", "By route template", counts);
};

export const rows: readonly Row[] = [
  overview,
  {
    title: "gateway-bff",
    panels: [
      requestsOf("gateway-bff"),
      panel("Logins", "By result", countBy("gateway_login_total", ["result"])),
      panel("Failed logins", "Objective: 0.5 % over 28 days; causes on the player's side do not count", {
        unit: "percentunit",
        thresholds: [0.005, 0.072],
        targets: [
          [
            shareOf(
              `gateway_login_total{result!~"ok|suspended|login-refused|login-not-under-way"}`,
              "gateway_login_total",
            ),
            "failed",
          ],
        ],
      }),
      panel("/v1/me that fails with a 5xx status", "Objective: 0.1 % over 28 days", {
        unit: "percentunit",
        thresholds: [0.001, 0.0144],
        targets: [
          [
            shareOf(
              `http_server_request_duration_seconds_count{http_route="/v1/me", http_response_status_code=~"5.."}`,
              `http_server_request_duration_seconds_count{http_route="/v1/me"}`,
            ),
            "5xx",
          ],
        ],
      }),
      panel(
        "Calls to services",
        "Attempts, by service and result",
        countBy("gateway_upstream_total", ["upstream", "result"]),
      ),
      panel("Duration of calls to services (p99)", "With retries, and the wait for a slot", {
        unit: "s",
        thresholds: [0.8, 1],
        targets: quantiles("gateway_upstream_duration_seconds", ["upstream"], [0.99]),
      }),
      panel("Parts of profiles", "By part and result", countBy("gateway_profile_parts_total", ["part", "status"])),
      panel("Rate-limited requests", "Rejected with 429, or not counted because the limiter is unavailable", {
        unit: "reqps",
        targets: [
          [`sum by (limit, result) (${rate("gateway_rate_limited_total")}) or vector(0)`, "{{limit}} {{result}}"],
        ],
      }),
      panel(
        "Account's events at the gateway",
        "By result in its inbox",
        countBy('todoke_inbox_events_total{consumer="gateway-bff"}', ["result"]),
      ),
    ],
  },
  {
    title: "account",
    panels: [
      requestsOf("account"),
      panel("Commands", "By action and result", countBy("account_command_total", ["action", "result"])),
      ...outboxOf("account"),
    ],
  },
  {
    title: "entitlement",
    panels: [
      requestsOf("entitlement"),
      panel(
        "Commands",
        "unknown: the response to a COMMIT was lost; the caller's retry gets the result",
        countBy("entitlement_command_total", ["action", "result"]),
      ),
      ...outboxOf("entitlement"),
    ],
  },
  {
    title: "notification",
    panels: [
      requestsOf("notification"),
      panel(
        "Attempts to send",
        "released: not attempted, because sending to the receiver is paused",
        countBy("notification_delivery_total", ["result"]),
      ),
      panel("From the change to SENT", "Objective: 99 % within 2.5 s", {
        unit: "s",
        thresholds: [2.5, 10],
        targets: quantiles("notification_delivery_e2e_delay_seconds"),
      }),
      panel("Notifications not sent yet", "FAILED notifications wait for a redrive", {
        unit: "short",
        targets: [maxBy("notification_backlog_current", "status"), ["max(notification_dlq_current)", "FAILED"]],
      }),
      panel(
        "Age of the oldest due notification",
        "Above a minute: no sender runs, or sending to the receiver is paused",
        {
          unit: "s",
          thresholds: [10, 60],
          targets: [["max(notification_backlog_age_seconds)", "age"]],
        },
      ),
      panel("Dead-lettered notifications", "New rows of notification_dlq", {
        unit: "ops",
        targets: [[`sum(${rate("notification_dlq_total")}) or vector(0)`, "dead-lettered"]],
      }),
      panel("User inboxes streamed live", "Open streams of all processes", {
        unit: "short",
        targets: [["sum(notification_streams_current)", "streams"]],
      }),
    ],
  },
  {
    title: "matchmaking",
    panels: [
      requestsOf("matchmaking"),
      panel("Queued tickets", "By mode", { unit: "short", targets: [maxBy("matchmaking_queue_depth", "mode")] }),
      panel("Age of the oldest queued ticket", "By mode", {
        unit: "s",
        thresholds: [60, 300],
        targets: [maxBy("matchmaking_queue_oldest_age_seconds", "mode")],
      }),
      panel("From joining to being matched", "By mode", {
        unit: "s",
        targets: quantiles("matchmaking_time_to_match_seconds", ["mode"]),
      }),
      panel("Matches", "void: a ticket had already ended", countBy("matchmaking_match_total", ["mode", "result"])),
      panel("Tickets", "By result", countBy("matchmaking_ticket_total", ["result"])),
      ...outboxOf("matchmaking"),
    ],
  },
  {
    title: "points",
    panels: [
      requestsOf("points"),
      panel("Changes of points", "By kind and result", countBy("points_change_total", ["kind", "result"])),
      panel(
        "Point reservations",
        "Requests to reserve and to cancel, by result",
        countBy("points_reservation_total", ["action", "result"]),
      ),
      panel("From being due to being granted", "Objective: 99 % within 10 s", {
        unit: "s",
        thresholds: [10, 60],
        targets: quantiles("points_reservation_delay_seconds"),
      }),
      panel("Reservations due and not granted", "Counted up to 100,000; dead-lettered ones wait for a redrive", {
        unit: "short",
        targets: [
          maxBy("points_reservation_backlog", "status"),
          ['max(todoke_inbox_dead_current{consumer="points"})', "dead-lettered"],
        ],
      }),
      panel("Age of the oldest due reservation", "Above a minute while none is granted: investigate", {
        unit: "s",
        thresholds: [60, 600],
        targets: [["max(points_reservation_backlog_age_seconds)", "age"]],
      }),
      ...outboxOf("points"),
    ],
  },
  {
    title: "orders",
    panels: [
      requestsOf("orders"),
      panel("Requests to order", "By result", countBy("orders_accept_total", ["result"], "reqps")),
      panel("Orders by outcome", "Taken by the broker, retried, aborted", {
        unit: "ops",
        targets: [
          [`sum(${rate("outbox_enqueued_total")})`, "accepted"],
          [`sum(${rate("outbox_sent_total")})`, "sent"],
          [`sum by (code) (${rate("outbox_failed_total")})`, "failed {{code}}"],
          [`sum by (code) (${rate("outbox_aborted_total")})`, "aborted {{code}}"],
        ],
      }),
      panel("From acceptance to dispatch", "Time until an order is sent to the broker. Objective: 99 % within 1 s", {
        unit: "s",
        thresholds: [1, 10],
        targets: [
          ...quantiles("outbox_age_seconds", ["measured"], [0.5, 0.95]),
          ["max(orders_backlog_age_seconds)", "next to send"],
        ],
      }),
      panel("Orders that have not ended", "By status", {
        unit: "short",
        targets: [maxBy("orders_backlog_current", "status"), ["max(orders_open_current)", "open at the broker"]],
      }),
      panel("Unresolved orders", "Sent, neither confirmed nor denied by the broker", {
        unit: "short",
        thresholds: [1, 20],
        targets: [["max(orders_unresolved_current)", "orders"]],
      }),
      panel("Age of the oldest unresolved order", "After five minutes an operator must ask the broker", {
        unit: "s",
        thresholds: [60, 300],
        targets: [["max(orders_unresolved_age_seconds)", "age"]],
      }),
      panel("Positions", "Bought minus sold, by the fills", {
        unit: "short",
        targets: [["max by (instrument) (orders_position_current)", "{{instrument}}"]],
      }),
      ...outboxOf("orders"),
    ],
  },
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
