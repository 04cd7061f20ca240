/** The rules of `todoke audit`: a planted violation of each kind is found, and sound tables have none. */
import * as account from "@todoke/account";
import * as entitlement from "@todoke/entitlement";
import * as gateway from "@todoke/gateway-bff";
import { type AuditFinding, type AuditSpec, audit } from "@todoke/kernel/audit";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import * as orders from "@todoke/orders";
import * as points from "@todoke/points";
import { servicesDatabase } from "@todoke/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runTodoke } from "../testing/command.ts";

const services: Readonly<Record<string, { readonly audits: { readonly specs: readonly AuditSpec[] } }>> = {
  account,
  entitlement,
  gateway_bff: gateway,
  matchmaking,
  notification,
  orders,
  points,
};

const id = (n: number) => `0190f3c2-7a3b-7c1e-9f00-${String(n).padStart(12, "0")}`;

/** Sound rows in every service. */
const sound = `
set search_path to entitlement;
insert into entitlements (user_id, stock_keeping_unit, status, version, source, source_id) values ('u_1', 'item1', 'REVOKED', 2, 'refund', 'p_1');
insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  values ('u_1', 'item1', 1, 'GRANT', 'purchase', 'p_1', 'shop', '${id(1)}'), ('u_1', 'item1', 2, 'REVOKE', 'refund', 'p_1', 'shop', '${id(2)}');
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
  values ('${id(1)}', 'EntitlementGranted', 'entitlement.events', 'u_1/item1', 1, '{}', 'PUBLISHED', now() - interval '1 hour'),
         ('${id(2)}', 'EntitlementRevoked', 'entitlement.events', 'u_1/item1', 2, '{}', 'PUBLISHED', now() - interval '1 hour');
set search_path to account;
insert into users (user_id, status, version, suspended_reason) values ('u_1', 'SUSPENDED', 2, 'spam');
insert into audit_logs (user_id, version, actor, action, reason, before, after, created_at)
  values ('u_1', 1, 'x', 'CREATE', null, '{}', '{}', now() - interval '2 hours'), ('u_1', 2, 'x', 'SUSPEND', 'spam', '{}', '{}', now() - interval '1 hour');
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
  values ('${id(11)}', 'AccountCreated', 'account.events', 'u_1', 1, '{}'), ('${id(12)}', 'AccountSuspended', 'account.events', 'u_1', 2, '{}');
set search_path to gateway_bff;
insert into known_users (user_id, status, roles, account_version) values ('u_1', 'SUSPENDED', '{USER}', 2), ('u_2', 'ACTIVE', '{USER}', 1);
insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens, created_at, last_seen_at, ends_at)
  values ('${id(21)}', sha256('1'), 'u_1', 'native', 'i', 's', '', now(), now(), now() + interval '1 hour'),
         ('${id(22)}', sha256('2'), 'u_2', 'native', 'i', 's', '', now(), now(), now() + interval '1 hour');
set search_path to notification;
insert into processed_events (consumer, event_id, result) select 'notification', ('${id(0).slice(0, -2)}' || lpad(n::text, 2, '0'))::uuid, case n when 5 then 'dead' else 'effect' end from generate_series(0, 9) n;
insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload) values ('notification', '${id(5)}', 'T', 's', 'a', '', '{}', '');
insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at, status, sent_at)
  values ('${id(31)}', '${id(1)}', 'u_1', 'EntitlementGranted', '{}', now(), 'SENT', now()), ('${id(32)}', '${id(2)}', 'u_1', 'EntitlementRevoked', '{}', now(), 'FAILED', null);
insert into notification_dlq (notification_id, event_id, user_id, event_type, text, attempt_count) values ('${id(32)}', '${id(2)}', 'u_1', 'EntitlementRevoked', '{}', 10);
set search_path to matchmaking;
insert into matches (match_id, mode, session, rules_version, matched_at) values ('${id(41)}', 'duel', '{}', '1', now());
insert into ticket_ends (ticket_id, mode, user_id, status, match_id, team, party_size, attributes, joined_at, expires_at, ended_at)
  select 'duel.' || u, 'duel', u, 'MATCHED', '${id(41)}', 1, 1, '{}', now() - interval '1 minute', now() + interval '1 minute', now() from unnest(array['u_1', 'u_2']) u;
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload) values ('${id(42)}', 'MatchMade', 'matchmaking.events', '${id(41)}', 1, '{}');
set search_path to orders;
insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, changed_by, expires_at)
  values ('desk', 'k-1', 'o-1', 'c-1', '{}', 'd', 'paper', 'BTC-USD', 'BUY', 2, 'desk', now() + interval '1 day');
update outbox_orders set status = 'sending', lease_until = now(), attempts = 1;
update outbox_orders set status = 'succeeded', lease_until = null, done_at = now(), filled_qty = 1, filled_notional = 5;
insert into order_fills (order_row_id, trade_id, version, qty, price, filled_at) select id, 't-1', 4, 1, 5, now() from outbox_orders;
insert into idempo_ledger (caller, idempotency_key, order_row_id, request_digest, status, result_digest, answer, expires_at)
  select caller, idempotency_key, id, request_digest, 'succeeded', 'x', '', now() from outbox_orders;
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload) values ('${id(51)}', 'OrderAccepted', 'orders.events', 'c-1', 1, '{}');
reset search_path`;

let t: Awaited<ReturnType<typeof servicesDatabase>>;
beforeAll(async () => {
  t = await servicesDatabase();
  await t.db.query(sound);
});
afterAll(() => t[Symbol.asyncDispose]());

/** The findings of a service after `breaks`, which is rolled back. */
async function findingsAfter(schema: string, breaks: string): Promise<readonly AuditFinding[]> {
  const client = await t.open({ schema, poolMax: 1 }).connect();
  try {
    await client.query("begin; set local enable_seqscan = on; set local enable_bitmapscan = on");
    await client.query(breaks);
    return (await audit(client, services[schema]?.audits.specs ?? [], { keptMs: 86_400_000 })).findings;
  } finally {
    await client.query("rollback");
    client.release();
  }
}

test.each(Object.keys(services))("sound tables of %s have no findings", async (schema) => {
  expect(await findingsAfter(schema, "select 1")).toEqual([]);
});

/** The ledger of points has its own planted violations, in services/points/store/audit.test.ts. */
const planted: readonly [schema: string, rule: RegExp, breaks: string][] = [
  ["entitlement", /^every entitlement is as its last change/, `update entitlements set status = 'ACTIVE'`],
  ["entitlement", /^every entitlement is as its last change/, `update entitlements set source_id = 'other'`],
  ["entitlement", /^changes of an entitlement are numbered/, `delete from entitlement_audit where version = 1`],
  ["entitlement", /^changes of an entitlement are numbered/, `update entitlements set version = 3`],
  ["entitlement", /^every change has its event/, `delete from outbox_events where event_id = '${id(2)}'`],
  [
    "entitlement",
    /^events of an aggregate are published in their order/,
    `update outbox_events set status = 'PENDING', published_at = null where event_id = '${id(1)}'`,
  ],
  ["entitlement", /^versions of an aggregate rise/, `update outbox_events set version = 1`],
  [
    "entitlement",
    /^every unfinished event is due/,
    `update outbox_events set status = 'PENDING', published_at = null, next_retry_at = 'infinity'`,
  ],
  ["account", /^every version of a user has one change/, `update users set version = 3`],
  ["account", /^every version of a user has one change/, `delete from audit_logs where version = 1`],
  ["account", /^every user is in the state/, `update users set status = 'ACTIVE', suspended_reason = null`],
  ["account", /^every suspension, .* has its event/, `delete from outbox_events where version = 2`],
  ["gateway_bff", /^no deleted user has a live session/, `update known_users set status = 'DELETED'`],
  ["notification", /^every event that is marked dead/, `delete from inbox_dlq`],
  ["notification", /^no dead letter had its effect/, `update processed_events set result = 'effect'`],
  ["notification", /^every FAILED notification/, `delete from notification_dlq`],
  ["notification", /^every open dead letter/, `delete from notifications where status = 'FAILED'`],
  ["notification", /^one notification for each/, `update notifications set event_id = '${id(1)}'`],
  [
    "notification",
    /^every row of notifications ends or is due/,
    `update notifications set status = 'PENDING', sent_at = null, next_retry_at = 'infinity' where status = 'SENT'`,
  ],
  [
    "matchmaking",
    /^nobody is in two matches/,
    `insert into matches (match_id, mode, session, rules_version, matched_at) values ('${id(49)}', 'duel', '{}', '1', now());
     insert into ticket_ends select 'duel.z', mode, user_id, status, reason, '${id(49)}', team, 2, attributes, joined_at, expires_at, ended_at
       from ticket_ends where user_id = 'u_1'`,
  ],
  [
    "matchmaking",
    /^no ticket that ended waits/,
    `insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
     select ticket_id, mode, user_id, 1, '{}', '{}', joined_at, expires_at, expires_at from ticket_ends`,
  ],
  ["matchmaking", /^every match has at least two players/, `delete from ticket_ends where user_id = 'u_1'`],
  [
    "matchmaking",
    /^every match has at least two players/,
    `update ticket_ends set mode = 'other' where user_id = 'u_1'`,
  ],
  ["matchmaking", /^every match has its event/, `delete from outbox_events`],
  ["orders", /^every ledger entry says/, `update idempo_ledger set status = 'failed'`],
  [
    "orders",
    /^every order that has not ended has its ledger/,
    `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, changed_by, expires_at)
     values ('desk', 'k-2', 'o-2', 'c-2', '{}', 'd', 'paper', 'BTC-USD', 'BUY', 1, 'desk', now())`,
  ],
  [
    "orders",
    /^the last step of every order/,
    `alter table order_status_history disable trigger all; delete from order_status_history where to_status = 'succeeded'`,
  ],
  [
    "orders",
    /^each step of an order continues/,
    `alter table order_status_history disable trigger all; delete from order_status_history where to_status = 'sending'`,
  ],
  ["orders", /^fills add up/, `delete from order_fills`],
  ["orders", /^open quantities of positions/, `update positions set open_buy_qty = open_buy_qty + 1`],
  ["orders", /^every order has its events/, `delete from outbox_events`],
  ["orders", /^the broker's books agree/, `insert into reconciliations (adapter, mismatches) values ('paper', 1)`],
  [
    "orders",
    /^every row of outbox_orders ends or is due/,
    `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, changed_by, expires_at, next_retry_at)
     values ('desk', 'k-2', 'o-2', 'c-2', '{}', 'd', 'paper', 'BTC-USD', 'BUY', 1, 'desk', now(), 'infinity')`,
  ],
  [
    "orders",
    /^every row of cancel_requests ends or is due/,
    `insert into cancel_requests (order_row_id, adapter, requested_by, next_retry_at) select id, adapter, 'desk', 'infinity' from outbox_orders`,
  ],
  [
    "orders",
    /^every row of followed_orders ends or is due/,
    `insert into followed_orders (order_row_id, adapter, next_retry_at) select id, adapter, 'infinity' from outbox_orders
     on conflict (order_row_id) do update set next_retry_at = 'infinity', status = 'open'`,
  ],
  ["points", /^balance and held points/, `insert into point_root (user_id, balance) values ('u_1', 5)`],
];

test("every rule has a planted violation", () => {
  const ofLedger = new Set(
    points.audits.specs.flatMap(({ rules }) => ("all accounts add up to 0" in rules ? Object.keys(rules) : [])),
  );
  const rules = new Set(
    Object.values(services).flatMap(({ audits }) => audits.specs.flatMap(({ rules }) => Object.keys(rules))),
  );
  const isPlanted = (rule: string) => ofLedger.has(rule) || planted.some(([, pattern]) => pattern.test(rule));
  expect([...rules].filter((rule) => !isPlanted(rule))).toEqual([]);
});

test.each(planted)("%s: a violation of %s is found", async (schema, rule, breaks) => {
  const found = await findingsAfter(schema, breaks);
  expect(found.map((finding) => finding.rule)).toContainEqual(expect.stringMatching(rule));
  expect(found.every(({ about, detail }) => about !== "" && detail !== "")).toBe(true);
});

test("an event that an operator discarded is not missing", async () => {
  const found = await findingsAfter(
    "entitlement",
    `insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, action, discarded)
     select 'outbox_events', event_id::text, 'aki', 'test', 0, 'discard', to_jsonb(o) from outbox_events o where event_id = '${id(2)}';
     delete from outbox_events where event_id = '${id(2)}'`,
  );
  expect(found).toEqual([]);
});

/** Changes rows, audits all services, and undoes the change. */
async function auditAfter(breaks: string, undo: string): Promise<{ code: number | null; out: string }> {
  await t.db.query(breaks);
  try {
    return await runTodoke("audit", { DATABASE_URL: t.url });
  } finally {
    await t.db.query(undo);
  }
}

test("the command audits every service, and what holds between them", async () => {
  const { code, out } = await auditAfter("select 1", "select 1");
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("events: checked 2 published events") });
  for (const name of [
    "account",
    "entitlement",
    "gateway-bff",
    "matchmaking",
    "notification",
    "orders",
    "points",
    "sessions",
  ])
    expect(out).toContain(`${name}: checked `);
});

test("a published event that a consumer never got is named, unless it waits at the bus", async () => {
  const missing = `delete from notification.processed_events where event_id = '${id(2)}'`;
  const back = `insert into notification.processed_events (consumer, event_id) values ('notification', '${id(2)}')`;
  const { code, out } = await auditAfter(missing, back);
  expect([code, out]).toEqual([
    1,
    expect.stringContaining(
      `${id(2)}: EntitlementRevoked of entitlement is not at notification: \`todoke why ${id(2)}\``,
    ),
  ]);
});

test("a session of a suspended user that lets them act is named", async () => {
  const { code, out } = await auditAfter(
    `update gateway_bff.known_users set status = 'ACTIVE' where user_id = 'u_1'`,
    `update gateway_bff.known_users set status = 'SUSPENDED' where user_id = 'u_1'`,
  );
  expect([code, out]).toEqual([1, expect.stringMatching(new RegExp(`${id(21)}: of u_1, who is SUSPENDED since `))]);
  const older = await auditAfter(
    `update gateway_bff.sessions set created_at = now() - interval '3 hours' where user_id = 'u_1'`,
    `update gateway_bff.sessions set created_at = now() where user_id = 'u_1'`,
  );
  expect(older.code).toBe(1);
});

test("an order that only the broker has is named, from its own books", async () => {
  const { code, out } = await auditAfter(
    `create schema paper_broker;
     create table paper_broker.orders (position bigint, client_order_id text, instrument text, side text, qty numeric,
       filled_qty numeric, price numeric, status text, why text, taken_at timestamptz);
     insert into paper_broker.orders values (1, 'tdk-lost', 'BTC-USD', 'BUY', 1, 1, 5, 'filled', null, now())`,
    "drop schema paper_broker cascade",
  );
  expect([code, out]).toEqual([1, expect.stringContaining("tdk-lost: not-ours: the broker has it as paper-1")]);
});
