/**
 * The orders service to the harness: what clients order, and what must be in its tables and in the broker's books
 * afterwards. The broker is the simulator, which dedupes nothing: what is sent twice is taken twice, and is seen.
 */
import { hash } from "node:crypto";
import { groupBy } from "../checks/group.ts";
import { checkPublished } from "../checks/outbox.ts";
import type { Evidence, Row } from "../evidence.ts";
import { commandsOf, type Told } from "../history.ts";
import type { InvariantName, Violation } from "../invariants.ts";
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
    // Longer together than any outage, so that an order is given up only when the run is one long one.
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
      // docs/states.md has them all; a row that waits may also be put off, and one in doubt asked about.
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
  carriedOut: (evidence) => rows(evidence, "orders").map(({ command }) => String(command)),
  check: (evidence) => [
    ...checkAccepted(evidence),
    ...checkBooks(evidence),
    ...checkLedger(evidence),
    ...checkSteps(evidence),
    ...checkEvents(evidence),
    ...checkPublished(evidence, rows(evidence, "events")),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`orders/${name}`] ?? [];

const breach = (invariant: InvariantName, what: string): Violation => ({ invariant, what });

const byCommand = (all: readonly Row[]) => groupBy(all, ({ command }) => String(command));

/** What was answered is there, once; what was refused is not; and nothing is there that nobody ordered. */
function checkAccepted(evidence: Evidence): Violation[] {
  const told = commandsOf(evidence.history).filter(({ command }) => command.service === "orders");
  const written = byCommand(rows(evidence, "orders"));
  const known = new Set(told.map(({ command }) => command.id));
  const strangers = [...written.keys()].filter((id) => !known.has(id));
  return [
    ...told.flatMap((one) => checkOne(one, written.get(one.command.id) ?? [])),
    ...strangers.map((id) => breach("nothing-without-a-cause", `order ${id} is there, and nobody sent it`)),
  ];
}

function checkOne({ command, attempts, end }: Told, its: readonly Row[]): Violation[] {
  const name = `order ${command.id} (${command.caller}, ${command.key})`;
  const found: Violation[] = [];
  const say = (invariant: InvariantName, what: string) => void found.push(breach(invariant, `${name} ${what}`));
  const oks = attempts.filter((attempt) => attempt.end === "ok");
  if (its.length > 1) say("done-once", `is there ${its.length} times`);
  if (command.wants === "refusal") {
    if (oks.length > 0) say("other-body-is-refused", `was answered ${oks[0]?.status}`);
    if (its.length > 0) say("refused-is-not-done", "should not be there, and is");
    return found;
  }
  const refusal = attempts.find((attempt) => attempt.end === "refused");
  if (refusal) say("valid-is-accepted", `was refused: ${refusal.status} ${refusal.answer ?? ""}`);
  const [order] = its;
  for (const { status, answer = "{}" } of oks)
    if (!order || JSON.parse(answer).request_digest !== order.request_digest)
      say("answered-is-done", `was answered ${status} ${answer}, and what is there is ${JSON.stringify(order)}`);
  const ends = new Set(oks.flatMap(({ answer = "{}" }) => (JSON.parse(answer).status === "accepted" ? [] : [answer])));
  if (ends.size > 1) say("same-answer", `has ended, and was answered ${[...ends].join(" and ")}`);
  if (end === "refused" && order) say("refused-is-not-done", "was refused, and is there");
  return found;
}

/** The name that the broker must know an order by: the same for caller and key, for ever. */
const nameAtBroker = ({ caller, idempotency_key }: Row): string =>
  `tdk-${hash("sha256", `${caller}\0${idempotency_key}`, "hex").slice(0, 40)}`;

/** Our books and the broker's say the same: what it has, it has once, under its one name, and we know what it answered. */
function checkBooks(evidence: Evidence): Violation[] {
  const ours = new Map(rows(evidence, "orders").map((order) => [nameAtBroker(order), order]));
  const taken = groupBy(evidence.orderBroker, ({ order }) => order.client_order_id);
  const theirs = [...taken].flatMap(([name, its]) => {
    const [first] = its;
    const order = ours.get(name);
    if (!first || !order) return [breach("one-name-for-ever", `the broker took ${name}, which is no order's name`)];
    const found: Violation[] = [];
    const say = (invariant: InvariantName, what: string) => void found.push(breach(invariant, `${name} ${what}`));
    if (its.length > 1) say("order-taken-once", `was taken ${its.length} times`);
    if (first.at < Number(order.created_at)) say("intent-before-bytes", "was taken before it was written down");
    if (order.status !== "succeeded") say("taken-is-succeeded", `was taken, and is ${order.status}`);
    const said = its.map(({ order: { broker_order_id } }) => broker_order_id);
    const digests = its.map((each) => `sha256:${hash("sha256", JSON.stringify(each.order), "hex")}`);
    if (order.status === "succeeded" && !said.includes(String(order.broker_order_id)))
      say("broker-answer-is-kept", `is ${said.join()} there, and ${order.broker_order_id} with us`);
    else if (order.status === "succeeded" && !digests.includes(String(order.evidence_digest)))
      say("broker-answer-is-kept", "was answered otherwise than what is kept as evidence");
    return found;
  });
  const missing = [...ours].filter(([name, { status }]) => status === "succeeded" && !taken.has(name));
  return [
    ...theirs,
    ...missing.map(([name]) => breach("taken-is-succeeded", `${name} has succeeded, and the broker has not got it`)),
  ];
}

const ledgerStatus: Readonly<Record<string, string>> = { succeeded: "succeeded", aborted: "failed" };

/** Every order is in the ledger, once, with what became of it and the digest of its answer. */
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
    return isRight ? [] : [breach("ledger-follows", `${command} is ${status}, and the ledger has ${line?.status}`)];
  });
}

/** Each step begins where the one before ended; there is none after an end, and none back from doubt to the wire. */
function checkSteps(evidence: Evidence): Violation[] {
  return [...byCommand(rows(evidence, "steps"))].flatMap(([command, steps]) => {
    const wrong = steps.findIndex(({ from_status, to_status }, n) => {
      const before = steps[n - 1]?.to_status ?? null;
      const isOver = before === "succeeded" || before === "aborted";
      return from_status !== before || isOver || (from_status === "unknown" && to_status === "sending");
    });
    if (wrong < 0) return [];
    const words = steps.map(({ to_status }) => to_status).join(">");
    return [breach("allowed-transitions", `${command} went ${words}: step ${wrong + 1} cannot be`)];
  });
}

/** That it was accepted is told once, and so is its end. */
function checkEvents(evidence: Evidence): Violation[] {
  const events = byCommand(rows(evidence, "events"));
  return rows(evidence, "orders").flatMap(({ command, status }) => {
    const its = events.get(String(command)) ?? [];
    const count = (type: string) => its.filter(({ event_type }) => event_type === type).length;
    const told = [count("OrderAccepted"), count("OrderSucceeded"), count("OrderFailed")].join();
    const wanted = [1, status === "succeeded" ? 1 : 0, status === "aborted" ? 1 : 0].join();
    return told === wanted ? [] : [breach("event-per-change", `${command} is ${status}, and was told ${told} times`)];
  });
}
