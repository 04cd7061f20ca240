import { randomUUIDv7 } from "node:crypto";
import { servicesDatabase } from "@todoke/service/testing";
import type { Explanation } from "@todoke/service/why";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runTodoke } from "../testing/command.ts";

const u1 = "0190f3c2-0000-7000-8000-000000000001";
const event = (n: number) => `0190f3c2-7a3b-7c1e-9f00-${String(n).padStart(12, "0")}`;
const notificationOf = (n: number) => `0190f3c2-7a3b-7aaa-8aaa-${String(n).padStart(12, "0")}`;

const point = (n: number) => `0190f3c2-7a3b-7ccc-9f00-${String(n).padStart(12, "0")}`;

/** Made at the time of the order, by which the events of an order are found. */
const orderEvent = randomUUIDv7();

/** What a purchase leaves behind: event 1 is delivered, 2 is dead at its sending, 3 is FAILED, 4 waits behind it. */
const story = `
set search_path to entitlement;
insert into entitlements (user_id, stock_keeping_unit, status, version, source, source_id, updated_at)
  values ('${u1}', 'item1', 'ACTIVE', 1, 'purchase', 'p_1', '2026-11-18T10:00:00Z');
insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  values ('${u1}', 'item1', 1, 'GRANT', 'purchase', 'p_1', 'shop', '${event(1)}');
insert into idempotency_keys (scope, idem_key, request_hash, response_status, response_content_type, response_body, created_at, expires_at)
  values ('shop POST /v1/entitlements/grants', 'p_1', sha256('a'), 201, 'application/json; charset=utf-8',
          '{"user_id":"${u1}","stock_keeping_unit":"item1","status":"ACTIVE","version":1}', '2026-11-18T10:00:00Z', now() + interval '1 day'),
         ('user:${u1} POST /x', 'p_1', sha256('a'), 200, 'application/json', '{}', now(), now() + interval '1 day'),
         ('web POST /v1/points/spends', 'refused-1', sha256('a'), 409, 'application/json',
          '{"code":"insufficient-points","status":409,"detail":"the balance is 3"}', '2026-11-18T09:00:00Z', now() + interval '1 day');
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, headers, created_at, status, attempt_count, published_at, next_retry_at, last_error)
  values ('${event(1)}', 'EntitlementGranted', 'entitlement.events', '${u1}/item1', 1, '{"user_id":"${u1}","stock_keeping_unit":"item1","version":"1"}',
          '{"trace_id":"0190f3c27a3b00000000000000000001"}', '2026-11-18T10:00:00Z', 'PUBLISHED', 1, '2026-11-18T10:00:01Z', now(), null),
         ('${event(2)}', 'EntitlementGranted', 'entitlement.events', '${u1}/item2', 1, '{"user_id":"${u1}"}', '{}', '2026-11-18T10:00:00Z', 'PUBLISHED', 1, '2026-11-18T10:00:01Z', now(), null),
         ('${event(3)}', 'EntitlementGranted', 'entitlement.events', 'u_2/item1', 1, '{"user_id":"u_2"}', '{}', '2026-11-18T10:00:00Z', 'FAILED', 10, null, '2026-11-18T10:02:00Z', 'cannot be encoded'),
         ('${event(4)}', 'EntitlementRevoked', 'entitlement.events', 'u_2/item1', 2, '{"user_id":"u_2"}', '{}', '2026-11-18T10:01:00Z', 'PENDING', 0, null, now(), null),
         ('${event(5)}', 'EntitlementGranted', 'entitlement.events', 'u_3/item1', 1, '{"user_id":"u_3"}',
          '{"trace_id":"0af7651916cd43dd8448eb211c80319c","request_id":"0190f3c2-7a3b-7bbb-8000-00000000000a"}', '2026-11-18T10:00:00Z', 'PUBLISHED', 1, '2026-11-18T10:00:01Z', now(), null);
set search_path to notification;
insert into processed_events (consumer, event_id, processed_at) select 'notification', e::uuid, '2026-11-18T10:00:02Z' from unnest(array['${event(1)}', '${event(2)}', '${event(9)}']) e;
insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at, created_at, status, attempt_count, sent_at, last_error)
  values ('${notificationOf(1)}', '${event(1)}', '${u1}', 'EntitlementGranted', '{}', '2026-11-18T10:00:00Z', '2026-11-18T10:00:02Z', 'SENT', 1, '2026-11-18T10:00:03Z', null),
         ('${notificationOf(2)}', '${event(2)}', '${u1}', 'EntitlementGranted', '{}', '2026-11-18T10:00:00Z', '2026-11-18T10:00:02Z', 'FAILED', 10, null, 'webhook answered 410'),
         ('${notificationOf(6)}', '${event(6)}', 'u_6', 'EntitlementGranted', '{}', '2026-11-18T10:00:00Z', '2026-11-18T10:00:02Z', 'PENDING', 2, null, 'webhook answered 503');
update notifications set next_retry_at = '2026-11-18T10:05:00Z' where notification_id = '${notificationOf(6)}';
insert into notification_dlq (notification_id, event_id, user_id, event_type, text, attempt_count, last_error, failed_at)
  values ('${notificationOf(2)}', '${event(2)}', '${u1}', 'EntitlementGranted', '{}', 10, 'webhook answered 410', '2026-11-18T10:02:00Z');
insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, last_error, redriven_at, action, discarded)
  values ('notifications', '${notificationOf(7)}', 'aki', 'a test user', 3, 'x', '2026-11-18T10:03:00Z', 'discard', '{}');
insert into inbox_attempts (consumer, event_id, attempt_count, last_error, updated_at) values ('notification', '${event(5)}', 3, 'no such column', '2026-11-18T10:00:09Z');
set search_path to account;
insert into users (user_id, display_name, email) values ('${u1}', 'Aki', 'aki@example.com');
set search_path to orders;
insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, changed_by, expires_at)
  values ('desk', 'k-1', 'o-1', 'c-1', '{}', 'd', 'paper', 'BTC-USD', 'BUY', 1, 'desk', now());
update outbox_orders set status = 'sending', lease_until = now(), attempts = 1;
update outbox_orders set status = 'unknown', lease_until = null, in_doubt_since = now(), last_error_code = 'TIMEOUT', last_error_msg = 'no reply';
insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
  values ('${orderEvent}', 'OrderAccepted', 'orders.events', 'c-1', 1, '{"user_id":"u_8","client_order_id":"c-1"}', 'PUBLISHED', now());
insert into notification.processed_events (consumer, event_id) values ('notification', '${orderEvent}');
insert into notification.notifications (notification_id, event_id, user_id, event_type, text, occurred_at, status, sent_at)
  values ('${orderEvent.slice(0, 14)}7aaa-8aaa-000000000008', '${orderEvent}', 'u_8', 'OrderAccepted', '{}', now(), 'SENT', now());
set search_path to points;
insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash) values ('${point(1)}', 'u_9', 5, '2099-01-01', 'shop r-1', sha256('r'));
insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after, version, effective_at, created_at)
  values ('${point(2)}', 'shop t-2', 'u_9', 5, 'ADD', 5, 5, 0, 1, now(), now());
insert into point_holds (hold_id, user_id, amount, ends_at, created_at, updated_at) values ('${point(3)}', 'u_9', 5, now(), now(), now());
set search_path to matchmaking;
insert into matches (match_id, mode, session, rules_version, matched_at) values ('${point(4)}', 'duel', '{}', '1', now());
insert into ticket_ends (ticket_id, mode, user_id, status, match_id, team, party_size, attributes, joined_at, expires_at, ended_at)
  values ('duel.1', 'duel', 'u_9', 'MATCHED', '${point(4)}', 1, 1, '{}', now(), now(), now());
set search_path to gateway_bff;
insert into known_users (user_id, status, roles, account_version) values ('u_9', 'ACTIVE', '{USER}', 1);
insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens, created_at, last_seen_at, ends_at)
  values ('${point(5)}', sha256('1'), 'u_9', 'native', 'i', 's', '', now(), now(), now() + interval '1 hour');
reset search_path`;

async function setup() {
  const t = await servicesDatabase();
  await t.db.query(story);
  const run = (args: string) => runTodoke(`why ${args}`, { DATABASE_URL: t.url });
  return {
    run,
    async why(id: string): Promise<Explanation> {
      const { code, out, err } = await run(`${id} --json`);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    },
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

let t: Awaited<ReturnType<typeof setup>>;
beforeAll(async () => {
  t = await setup();
});
afterAll(() => t[Symbol.asyncDispose]());

test("a request is followed over its event and its consumer to the notification that was sent", async () => {
  const explained = await t.why("p_1");
  expect(explained).toMatchObject({
    outcome: "done",
    cure: null,
    found: [{ kind: "key", id: "p_1", service: "entitlement" }],
  });
  expect(explained.sentence).toBe(
    `The request with the key p_1 was answered with 201 at 2026-11-18T10:00:00Z; the notification ${notificationOf(1)} was sent at 2026-11-18T10:00:03Z.`,
  );
  expect(
    explained.entries.filter(({ kind }) => kind !== "commit").map(({ service, kind }) => `${service} ${kind}`),
  ).toEqual([
    "entitlement request",
    "entitlement event",
    "entitlement published",
    "notification processed",
    "notification notification",
    "notification sent",
  ]);
  expect(explained.links).toContainEqual({ kind: "user", id: u1 });
});

test("a dead notification is named with its error and its cure, from the event, the user and the e-mail address", async () => {
  for (const id of [notificationOf(2), event(2), u1, "AKI@example.com"]) {
    const explained = await t.why(id);
    expect(explained, id).toMatchObject({
      outcome: "dead",
      sentence: `The notification ${notificationOf(2)} is FAILED since 2026-11-18T10:02:00Z after 10 attempts: webhook answered 410; redrive or discard it.`,
      cure: {
        command: `todoke dead redrive notification ${notificationOf(2)} --reason <text>`,
        dead_letter: { service: "notification", table: "notifications", id: notificationOf(2) },
      },
    });
  }
});

test("an event behind a FAILED one says which, since when and why", async () => {
  const explained = await t.why(event(4));
  expect(explained).toMatchObject({
    outcome: "blocked",
    sentence: `The event ${event(4)} waits behind the event ${event(3)} of the same aggregate, which is FAILED since 2026-11-18T10:02:00Z: cannot be encoded; redrive or discard that one.`,
    cure: { dead_letter: { service: "entitlement", table: "outbox_events", id: event(3) } },
  });
});

test("a trace id finds its events by the time in it", async () => {
  const explained = await t.why("0190f3c27a3b00000000000000000001");
  expect(explained.entries.map(({ kind, id }) => [kind, id])).toContainEqual(["event", event(1)]);
  expect(explained.outcome).toBe("done");
});

test("the id of a request finds what it wrote: it has the digits of its trace, or is beside it", async () => {
  for (const id of ["0190f3c2-7a3b-0000-0000-000000000001", "0190F3C2-7A3B-7BBB-8000-00000000000A"]) {
    const told = await t.why(id);
    expect(
      told.entries.map(({ service, kind }) => `${service} ${kind}`),
      id,
    ).toContain("entitlement event");
    expect(
      told.entries.some(({ service }) => service === "notification"),
      id,
    ).toBe(true);
  }
});

test("points, tickets, matches and sessions are found by their ids", async () => {
  for (const [id, kind] of [
    [point(1), "reservation"],
    [point(2), "transaction"],
    [point(3), "hold"],
    ["duel.1", "ticket"],
    [point(4), "match"],
    [point(5), "session"],
  ] as const) {
    const told = await t.why(id);
    expect(told.found, id).toContainEqual({ kind, id, service: expect.any(String) });
    expect(told.outcome, id).not.toBe("unknown");
  }
});

test("a failed attempt that is retried says when", async () => {
  expect(await t.why(notificationOf(6))).toMatchObject({
    outcome: "retrying",
    sentence: `The notification ${notificationOf(6)} failed 2 times and the next attempt is at 2026-11-18T10:05:00Z: webhook answered 503.`,
  });
  expect(await t.why(event(5))).toMatchObject({
    outcome: "retrying",
    sentence: `The event ${event(5)} at notification failed 3 times and it is retried automatically: no such column.`,
  });
});

test("a request that was refused wrote no event", async () => {
  expect(await t.why("refused-1")).toMatchObject({
    outcome: "refused",
    sentence:
      "No event was written: the request was refused at 2026-11-18T09:00:00Z with 409 (web POST /v1/points/spends: insufficient-points 409 the balance is 3).",
  });
});

test("unknown, expired and removed ids are distinguished", async () => {
  expect(await t.why(notificationOf(7))).toMatchObject({
    outcome: "removed",
    sentence: `${notificationOf(7)} was discarded by aki at 2026-11-18T10:03:00Z: a test user.`,
  });
  expect(await t.why(event(9))).toMatchObject({
    outcome: "expired",
    sentence: `The event ${event(9)} was processed by notification at 2026-11-18T10:00:02Z; its own row was removed by age.`,
  });
  expect(await t.why("0190f3c2-0000-7000-8000-00000000abcd")).toMatchObject({ outcome: "expired" });
  const unknown = await t.why("no-such-key");
  expect(unknown).toMatchObject({ outcome: "unknown", entries: [], found: [] });
  expect(unknown.sentence).toContain("no request with it has taken effect");
});

test("an order that nobody knows the outcome of is found by order id, key, row and name at the broker", async () => {
  for (const id of ["o-1", "k-1", "c-1"]) {
    const explained = await t.why(id);
    expect(explained.sentence, id).toMatch(
      /^The order c-1 is unresolved since .*: no reply; the broker is asked about it/,
    );
    const steps = explained.entries.filter(({ service }) => service === "orders");
    expect(steps.map(({ kind, state }) => `${kind} ${state}`)).toEqual(
      expect.arrayContaining(["order unknown", "step pending", "step sending", "step unknown", "event PUBLISHED"]),
    );
    expect(explained.entries.map(({ service, kind }) => `${service} ${kind}`)).toContain("notification sent");
  }
});

test("prints the sentence, the cure and the timeline, without control characters of others", async () => {
  const { code, out } = await t.run(event(4));
  expect(code).toBe(0);
  const lines = out.split("\n");
  expect(lines[0]).toMatch(/^The event .* waits behind the event /);
  expect(lines.slice(1, 3)).toEqual([
    "→ Fix the cause, then redrive or discard it; the others follow automatically.",
    `  todoke dead redrive entitlement ${event(3)} --reason <text>`,
  ]);
  expect(out).toMatch(/2026-11-18T10:01:00Z +entitlement +event +PENDING/);
  expect(await t.run("")).toMatchObject({ code: 2 });
  expect(await t.run("a b")).toMatchObject({ code: 2 });
});
