/**
 * `node flows/admin-scale.ts --rows 5000000`: fills the main tables with that many rows, and 10,000 dead letters of each kind, and
 * measures the reads of staff through the gateway. A list must answer within 100 ms, `why` within 200 ms. It prints a table of
 * Markdown, and exits with 1 if a read is slower.
 */
import { parseArgs } from "node:util";
import { EngineNotFound, findEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { startAll } from "./all-services.ts";

const { values } = parseArgs({ options: { rows: { type: "string", default: "5000000" } } });
const rows = Number(values.rows);
const dead = Math.min(10_000, rows);
const times = 20;

const postgres = await findEngine("postgres");
if (postgres instanceof EngineNotFound) throw postgres;
await using _stopped = postgres;
process.env.TEST_POSTGRES_URL = postgres.url;

/** A UUID v7 for each row: one row every 100 ms, until now. */
const id = (n: string) =>
  `(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - ${rows}::bigint * 100 + ${n} * 100), 12, '0') || '70008000' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const player = (n: string) => `'01900000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0')`;
const user = (n: string) => player(`(${n} % ${Math.max(1, Math.floor(rows / 10))})`);
const series = (count: number) => `generate_series(1, ${count}) n`;
const ago = `now() - n * interval '100 milliseconds'`;
const error = `'HTTP ' || (n % 7) || ' from the receiver'`;

const fills: Readonly<Record<string, string>> = {
  "entitlement.outbox_events": `insert into entitlement.outbox_events (event_id, event_type, subject, aggregate_key, version, payload, created_at, status, published_at)
    select ${id("n")}, 'EntitlementGranted', 'entitlement.events', ${user("n")} || '/item' || n, 1, jsonb_build_object('user_id', ${user("n")}), ${ago}, 'PUBLISHED', ${ago} from ${series(rows)}`,
  "entitlement.outbox_events, dead": `insert into entitlement.outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
    select gen_random_uuid(), case n when 9999 then 'Rare' else 'EntitlementGranted' end, 'entitlement.events', 'dead/' || n, 1, jsonb_build_object('user_id', ${user("n")}), 'FAILED', 10, ${error} from ${series(dead)}`,
  "entitlement.entitlements": `insert into entitlement.entitlements (user_id, stock_keeping_unit, status, source, source_id)
    select ${user("n")}, 'item' || n, 'ACTIVE', 'purchase', n::text from ${series(rows)}`,
  "entitlement.entitlement_audit": `insert into entitlement.entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
    select ${user("n")}, 'item' || n, 1, 'GRANT', 'purchase', n::text, 'shop', ${id("n")} from ${series(rows)}`,
  "entitlement.idempotency_keys": `insert into entitlement.idempotency_keys (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
    select 'shop POST /v1/entitlements/grants', 'key-' || n, sha256('a'), 201, 'application/json', '{}', now() + interval '1 day' from ${series(rows)}`,
  "entitlement.staff_acts": `insert into entitlement.staff_acts (actor, role, act, target, reason, created_at)
    select 'user:' || (n % 20), 'OPERATOR', 'grantEntitlementAsStaff', ${user("n")}, 'compensation', ${ago} from ${series(rows)}`,
  "account.users": `insert into account.users (user_id, display_name, email) select ${player("n")}, 'Player ' || n, 'p' || n || '@example.com' from ${series(rows)}`,
  "account.audit_logs": `insert into account.audit_logs (user_id, version, actor, action, before, after) select ${player("n")}, 1, 'service:gateway-bff', 'CREATE', '{}', '{}' from ${series(rows)}`,
  "notification.processed_events": `insert into notification.processed_events (consumer, event_id) select 'notification', ${id("n")} from ${series(rows)}`,
  "notification.notifications": `insert into notification.notifications (notification_id, event_id, user_id, event_type, text, occurred_at, created_at, status, sent_at)
    select ${id("n")}, ${id("n")}, ${user("n")}, 'EntitlementGranted', '{"en":"x","ja":"x"}', ${ago}, ${ago}, 'SENT', ${ago} from ${series(rows)}`,
  "notification.notification_dlq": `insert into notification.notification_dlq (notification_id, event_id, user_id, event_type, text, attempt_count, last_error)
    select gen_random_uuid(), gen_random_uuid(), ${user("n")}, 'EntitlementGranted', '{"en":"x","ja":"x"}', 10, ${error} from ${series(dead)}`,
  "notification.inbox_dlq": `insert into notification.inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, last_error)
    select 'notification', gen_random_uuid(), 'EntitlementGranted', 'entitlement.events', 'a' || n, '', '{}', convert_to(n::text, 'UTF8'), ${error} from ${series(dead)}`,
  "matchmaking.ticket_ends": `insert into matchmaking.ticket_ends (ticket_id, mode, user_id, status, party_size, attributes, joined_at, expires_at, ended_at)
    select 'duel.' || n, 'duel', ${user("n")}, 'CANCELLED', 1, '{}', ${ago}, now(), ${ago} from ${series(rows)}`,
  "points.point_transactions": `insert into points.point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after, version, effective_at, created_at)
    select ${id("n")}, 'shop ' || n, ${user("n")}, 5, 'ADD', 5, 5, 0, n, ${ago}, ${ago} from ${series(rows)}`,
  "points.point_reservations": `insert into points.point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
    select ${id("n")}, ${user("n")}, 5, now() + interval '1 day' + n * interval '1 second', 'shop ' || n, sha256('r') from ${series(rows)}`,
  "orders.outbox_orders": `insert into orders.outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, changed_by, expires_at, user_id, status, done_at, created_at, last_error_code)
    select 'desk', 'ok-' || n, 'oo-' || n, 'tdk-' || n, '{"time_in_force":"IOC"}', 'd', 'paper', 'BTC-USD', 'BUY', 1, 'desk', now() + interval '1 day', ${user("n")}, 'aborted', ${ago}, ${ago}, 'CANCELLED' from ${series(rows)}`,
};

await using t = await startAll();
// Before the tables are full, while everything is quick.
const admin = await t.createUser("admin");
const client = await t.db.connect();
// The triggers of a live system would take hours, and change nothing that is read here.
await client.query("set session_replication_role = replica; set statement_timeout = 0");
for (const [name, sql] of Object.entries(fills)) {
  const startedAt = performance.now();
  await client.query(sql);
  console.error(`${name}: ${Math.round((performance.now() - startedAt) / 1_000)} s`);
}
await client.query("reset session_replication_role; analyze");
client.release();
console.error("filled");

const token = await t.openSession(admin);
const [origin = ""] = t.gateways;
const get = (path: string) => fetch(origin + path, { headers: { authorization: `Bearer ${token}` } });
await until("the gateway knows the role", async () => (await get("/v1/admin/overview")).status === 200);

const { rows: samples } = await t.db.query<Record<string, string>>(
  `select ${id(String(Math.floor(rows / 2)))} as event, (select dlq_id::text from notification.inbox_dlq limit 1) as dead_event,
          (select notification_id::text from notification.notification_dlq limit 1) as dead_notification`,
);
const { event = "", dead_event = "", dead_notification = "" } = samples[0] ?? {};
const deadPath = (service: string, table: string) => `/v1/admin/services/${service}/dead-letters/${table}`;
const outbox = deadPath("entitlement", "outbox_events");
const why = (text: string) => `/v1/admin/why/${encodeURIComponent(text)}`;

const reads: readonly string[] = [
  "/v1/admin/overview",
  "/v1/admin/dead-letters/groups",
  ...[outbox, deadPath("notification", "notifications"), deadPath("notification", "inbox_dlq")].flatMap((path) => [
    path,
    `${path}?event_type=Rare`,
    `${path}?error=nothing+like+this`,
    `${path}?user_id=nobody`,
    `${path}:preview?error=HTTP+3`,
  ]),
  "/v1/admin/services/entitlement/dead-letter-batches",
  "/v1/admin/services/points/last-audit",
  "/v1/admin/audit-log",
  "/v1/admin/audit-log?actor=user:7",
  "/v1/admin/users?name=player+77",
  "/v1/admin/users?email=p77@example.com",
  "/v1/admin/audit",
  "/v1/users/01900000-0000-7000-8000-00000000004d/entitlements",
  "/v1/points/users/01900000-0000-7000-8000-00000000004d/balance",
  "/v1/points/users/01900000-0000-7000-8000-00000000004d/statement",
  "/v1/points/users/01900000-0000-7000-8000-00000000004d/reservations",
  "/v1/admin/users/01900000-0000-7000-8000-00000000004d/notifications",
  "/v1/admin/users/01900000-0000-7000-8000-00000000004d/tickets",
  "/v1/admin/users/01900000-0000-7000-8000-00000000004d/sessions",
  "/v1/admin/points/late-reservations",
  "/v1/admin/points/upcoming-reservations",
  "/v1/points/schedules",
  "/v1/orders",
  "/v1/orders?user_id=01900000-0000-7000-8000-00000000004d",
  "/v1/orders?status=succeeded",
  "/v1/orders?instrument=NONE",
  "/v1/orders/unresolved",
  "/v1/orders/trading-state",
  "/v1/admin/orders/reconciliations",
  "/v1/admin/matchmaking/rules",
  "/v1/matchmaking/queues/duel/stats",
  "/v1/admin/keys",
  ...[
    "01900000-0000-7000-8000-00000000004d",
    "p77@example.com",
    event,
    "key-77",
    "oo-77",
    "duel.77",
    dead_event,
    dead_notification,
    "nothing",
  ].map(why),
];

const at = (sorted: readonly number[], share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
const slow: string[] = [];
console.log(
  `| read, with ${rows.toLocaleString("en-US")} rows per table | fastest ms | p50 ms | p95 ms |\n|---|---:|---:|---:|`,
);
for (const path of reads) {
  const tooks: number[] = [];
  for (let n = 0; n < times; n++) {
    const startedAt = performance.now();
    const response = await get(path);
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    tooks.push(performance.now() - startedAt);
  }
  const sorted = tooks.sort((a, b) => a - b);
  const [p50, p95] = [at(sorted, 0.5), at(sorted, 0.95)];
  if (p95 > (path.startsWith("/v1/admin/why/") ? 200 : 100)) slow.push(path);
  console.log(`| \`${path}\` | ${(sorted[0] ?? 0).toFixed(1)} | ${p50.toFixed(1)} | ${p95.toFixed(1)} |`);
}
if (slow.length > 0) console.error(`too slow: ${slow.join(" ")}`);
process.exitCode = slow.length > 0 ? 1 : 0;
