/**
 * The orders service in a run: its workload, and the checks on its tables and on the broker. The broker simulator does not
 * deduplicate, so an order that is sent twice is visible.
 */
import { hash } from "node:crypto";
import { groupBy } from "../checks/group.ts";
import { checkPublished } from "../checks/outbox.ts";
import type { Evidence, Row } from "../evidence.ts";
import { type CommandHistory, groupCommands } from "../history.ts";
import { type InvariantName, type Violation, violation } from "../invariants.ts";
import { orderBrokerSecret, orderBrokerWindowMs } from "../order-broker.ts";
import type { ServiceUnderTest } from "./index.ts";
import { ordersWorkload } from "./orders-workload.ts";

const concurrency = 4;

export const orders: ServiceUnderTest = {
  name: "orders",
  copies: 2,
  load: () => import("@todoke/orders"),
  env: ({ orderBrokerUrl }) => ({
    ORDERS_PORT: "0",
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: orderBrokerUrl,
    ORDERS_BROKER_SECRET: orderBrokerSecret,
    ORDERS_BROKER_DEDUPES: "false",
    ORDERS_BROKER_WINDOW_MS: String(orderBrokerWindowMs),
    ORDERS_BROKER_TIMEOUT_MS: "300",
    ORDERS_SENDER_CONCURRENCY: String(concurrency),
    // In sum longer than any outage, so that no order is aborted for that.
    ORDERS_BACKOFF_SECONDS: `0.1,0.2,0.4,0.8,${Array(16).fill("1.5").join()}`,
  }),
  commits: ["accept orders", "transition order", "record dispatch", "claim outbox_orders"],
  publishes: true,
  consumes: false,
  failpoints: ["order.", "batch.", "relay.", "statement.", "stop."],
  lock: `select from orders.outbox_orders where status not in ('succeeded', 'aborted') limit 20 for update skip locked`,
  tables: [
    {
      table: "outbox_orders",
      key: "id",
      states: { ready: "pending", claimed: "sending", done: "succeeded", dead: "aborted" },
      // See docs/states.md. A pending row may be postponed, and an unresolved one checked.
      more: [
        "pending>pending",
        "pending>aborted",
        "sending>failed",
        "sending>unknown",
        "failed>failed",
        "failed>pending",
      ].concat(["failed>aborted", "unknown>unknown", "unknown>succeeded", "unknown>aborted", "unknown>pending"]),
      batchMax: concurrency,
    },
  ],
  workload: ordersWorkload,
  share: 0.25,
  unfinished: `select (select count(*) from orders.outbox_orders where status not in ('succeeded', 'aborted'))::int
                    + (select count(*) from orders.outbox_events where status <> 'PUBLISHED')::int as unfinished`,
  evidence: {
    orders: `select order_id as command, caller, idempotency_key, client_order_id, request_digest, status, broker_order_id,
                    evidence_digest, last_error_code, (extract(epoch from created_at) * 1000)::float8 as created_at
               from orders.outbox_orders`,
    ledger: `select o.order_id as command, l.status, l.request_digest, convert_from(l.answer, 'utf8') as answer,
                    l.result_digest, 'sha256:' || encode(sha256(l.answer), 'hex') as digest
               from orders.idempo_ledger l join orders.outbox_orders o on o.id = l.order_row_id`,
    steps: `select o.order_id as command, h.place, h.from_status, h.to_status
              from orders.order_status_history h join orders.outbox_orders o on o.id = h.order_row_id
             order by h.order_row_id, h.place`,
    events: `select event_id::text, event_type, aggregate_key as aggregate, version::int, status, position::int,
                    attempt_count, last_error, payload ->> 'order_id' as command
               from orders.outbox_events order by position`,
  },
  effectiveCommands: (evidence) => rows(evidence, "orders").map(({ command }) => String(command)),
  check: (evidence) => [
    ...checkAccepted(evidence),
    ...checkBroker(evidence),
    ...checkLedger(evidence),
    ...checkSteps(evidence),
    ...checkEvents(evidence),
    ...checkPublished(evidence, rows(evidence, "events")),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`orders/${name}`] ?? [];

const byCommand = (all: readonly Row[]) => groupBy(all, ({ command }) => String(command));

/** Accepted orders exist once, rejected ones do not, and every order has a command. */
function checkAccepted(evidence: Evidence): Violation[] {
  const histories = groupCommands(evidence.history).filter(({ command }) => command.service === "orders");
  const written = byCommand(rows(evidence, "orders"));
  const known = new Set(histories.map(({ command }) => command.id));
  const unknownIds = [...written.keys()].filter((id) => !known.has(id));
  return [
    ...histories.flatMap((one) => checkOne(one, written.get(one.command.id) ?? [])),
    ...unknownIds.map((id) => violation("effect-has-a-command", `order ${id} exists without a command`)),
  ];
}

function checkOne({ command, attempts, end }: CommandHistory, its: readonly Row[]): Violation[] {
  const name = `order ${command.id} (${command.caller}, ${command.key})`;
  const found: Violation[] = [];
  const report = (invariant: InvariantName, what: string) => void found.push(violation(invariant, `${name} ${what}`));
  const oks = attempts.filter((attempt) => attempt.end === "ok");
  if (its.length > 1) report("done-once", `exists ${its.length} times`);
  if (command.wants === "refusal") {
    if (oks.length > 0) report("conflict-is-rejected", `was answered ${oks[0]?.status}`);
    if (its.length > 0) report("rejected-is-not-done", "exists, but must be rejected");
    return found;
  }
  const refusal = attempts.find((attempt) => attempt.end === "refused");
  if (refusal) report("valid-is-accepted", `was rejected: ${refusal.status} ${refusal.answer ?? ""}`);
  const [order] = its;
  for (const { status, answer = "{}" } of oks)
    if (!order || JSON.parse(answer).request_digest !== order.request_digest)
      report("accepted-is-done", `was answered ${status} ${answer}, but the table has ${JSON.stringify(order)}`);
  const ends = new Set(oks.flatMap(({ answer = "{}" }) => (JSON.parse(answer).status === "accepted" ? [] : [answer])));
  if (ends.size > 1) report("same-response", `has ended, and was answered ${[...ends].join(" and ")}`);
  if (end === "refused" && order) report("rejected-is-not-done", "was rejected, but exists");
  return found;
}

/** The client_order_id of an order: a function of caller and key. */
const brokerName = ({ caller, idempotency_key }: Row): string =>
  `tdk-${hash("sha256", `${caller}\0${idempotency_key}`, "hex").slice(0, 40)}`;

/** Our books and the broker's report the same: what it has, it has once, under its one name, and we know what it answered. */
function checkBroker(evidence: Evidence): Violation[] {
  const ordersByName = new Map(rows(evidence, "orders").map((order) => [brokerName(order), order]));
  const taken = groupBy(evidence.orderBroker, ({ order }) => order.client_order_id);
  const brokerViolations = [...taken].flatMap(([name, its]) => {
    const [first] = its;
    const order = ordersByName.get(name);
    if (!first || !order) return [violation("one-broker-name", `the broker took ${name}, which is no order of ours`)];
    const found: Violation[] = [];
    const report = (invariant: InvariantName, what: string) => void found.push(violation(invariant, `${name} ${what}`));
    if (its.length > 1) report("order-taken-once", `was taken ${its.length} times`);
    if (first.at < Number(order.created_at)) report("order-stored-before-sending", "was taken before it was stored");
    if (order.status !== "succeeded") report("taken-is-succeeded", `was taken and is ${order.status}`);
    const brokerIds = its.map(({ order: { broker_order_id } }) => broker_order_id);
    const digests = its.map((each) => `sha256:${hash("sha256", JSON.stringify(each.order), "hex")}`);
    if (order.status === "succeeded" && !brokerIds.includes(String(order.broker_order_id)))
      report(
        "broker-reply-is-stored",
        `is ${brokerIds.join()} at the broker and ${order.broker_order_id} in our table`,
      );
    else if (order.status === "succeeded" && !digests.includes(String(order.evidence_digest)))
      report("broker-reply-is-stored", "has another reply than the stored evidence");
    return found;
  });
  const missing = [...ordersByName].filter(([name, { status }]) => status === "succeeded" && !taken.has(name));
  return [
    ...brokerViolations,
    ...missing.map(([name]) => violation("taken-is-succeeded", `${name} succeeded, but the broker does not have it`)),
  ];
}

const ledgerStatus: Readonly<Record<string, string>> = { succeeded: "succeeded", aborted: "failed" };

/** Every order is in the ledger once, with its status and the digest of its response. */
function checkLedger(evidence: Evidence): Violation[] {
  const ledger = byCommand(rows(evidence, "ledger"));
  return rows(evidence, "orders").flatMap(({ command, status, request_digest }) => {
    const [line, ...more] = ledger.get(String(command)) ?? [];
    const wanted = ledgerStatus[String(status)] ?? "accepted";
    const isRight =
      line !== undefined &&
      more.length === 0 &&
      line.status === wanted &&
      line.request_digest === request_digest &&
      JSON.parse(String(line.answer)).status === wanted &&
      (wanted === "accepted" || line.result_digest === line.digest);
    return isRight
      ? []
      : [violation("ledger-matches-orders", `${command} is ${status}, but the ledger has ${line?.status}`)];
  });
}

/** Steps are connected, none follows an end, and an unresolved order is not sent directly. */
function checkSteps(evidence: Evidence): Violation[] {
  return [...byCommand(rows(evidence, "steps"))].flatMap(([command, steps]) => {
    const wrong = steps.findIndex(({ from_status, to_status }, n) => {
      const before = steps[n - 1]?.to_status ?? null;
      const hasEnded = before === "succeeded" || before === "aborted";
      return from_status !== before || hasEnded || (from_status === "unknown" && to_status === "sending");
    });
    if (wrong < 0) return [];
    const words = steps.map(({ to_status }) => to_status).join(">");
    return [violation("allowed-transitions", `${command} went ${words}: step ${wrong + 1} is not allowed`)];
  });
}

/** One event for the acceptance and one for the end. */
function checkEvents(evidence: Evidence): Violation[] {
  const events = byCommand(rows(evidence, "events"));
  return rows(evidence, "orders").flatMap(({ command, status }) => {
    const its = events.get(String(command)) ?? [];
    const count = (type: string) => its.filter(({ event_type }) => event_type === type).length;
    const counts = [count("OrderAccepted"), count("OrderSucceeded"), count("OrderFailed")].join();
    const wanted = [1, status === "succeeded" ? 1 : 0, status === "aborted" ? 1 : 0].join();
    return counts === wanted
      ? []
      : [
          violation(
            "event-per-change",
            `${command} is ${status}, but has ${counts} events (accepted, succeeded, failed)`,
          ),
        ];
  });
}
