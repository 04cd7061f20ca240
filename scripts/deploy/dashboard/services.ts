/** A row for each service. */
import { countBy, maxBy, type Panel, panel, quantiles, type Row, rate, shareOf } from "./panel.ts";

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

export const serviceRows: readonly Row[] = [
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
];
