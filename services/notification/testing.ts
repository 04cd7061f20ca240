/** For tests of this service and of flows: a database with its schema, events, and a sender that fails on demand. */
import { encodeEvent } from "@todoke/contracts";
import type { Delivery } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { fixedId, longTimeouts, testDatabase } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import type { Data } from "./events/templates.ts";
import type { Send } from "./senders/send.ts";
import { insertNotifications, type NotificationRow } from "./store/notifications.ts";

export { notificationService } from "./main.ts";
export { InboxClient } from "./stream/testing.ts";

const own = { name: "notification", dir: new URL("./migrations/", import.meta.url) };

export async function setup() {
  const t = await testDatabase({ schema: "notification", sets: [kernelMigrations, own], pools: longTimeouts });
  const rows = async (sql: string) => (await t.db.query(sql)).rows;
  return {
    ...t,
    rows,
    /** PENDING notifications: number n belongs to event 1000 + n and occurred n seconds past the hour. */
    async write(...numbers: number[]): Promise<void> {
      await transaction(t.db, (tx) => insertNotifications(tx, numbers.map(notificationRow)));
    },
    /** Notification n with data. */
    async writeWithData(n: number, data: Data): Promise<void> {
      await transaction(t.db, (tx) => insertNotifications(tx, [{ ...notificationRow(n), data }]));
    },
    statuses: () => rows(`select status, attempt_count, last_error from notifications order by notification_id`),
  };
}

function notificationRow(n: number): NotificationRow {
  return {
    notification_id: fixedId(n),
    event_id: fixedId(1_000 + n),
    user_id: "u_123",
    event_type: "EntitlementGranted",
    text: { en: `item${n}`, ja: `item${n}` },
    formatPayload: () => ({
      event_id: fixedId(1_000 + n),
      event_type: "EntitlementGranted",
      stock_keeping_unit: `item${n}`,
    }),
    occurred_at: `2026-01-08T07:00:${String(n % 60).padStart(2, "0")}.000001Z`,
    headers: {},
  };
}

/** The delivery of event n. */
export function delivery(n: number, more: Partial<Delivery> = {}): Delivery {
  const eventId = fixedId(n);
  const occurredAt = "2026-01-08T07:10:00.123456Z";
  return {
    eventId,
    eventType: "EntitlementGranted",
    subject: "entitlement.events",
    aggregateKey: `u_123/item${n}`,
    occurredAt,
    headers: {},
    payload: encodeEvent("EntitlementGranted", {
      event_id: eventId,
      event_type: "EntitlementGranted",
      occurred_at: occurredAt,
      version: 1,
      user_id: "u_123",
      stock_keeping_unit: `item${n}`,
      source: "purchase",
      source_id: "p_456",
    }),
    redelivered: false,
    ...more,
  };
}

/** The delivery of an account event. */
export function accountDelivery(n: number, eventType: string, fields: object = {}): Delivery {
  const [eventId, occurredAt] = [fixedId(n), "2026-01-08T07:10:00.123456Z"];
  const user = { version: n, user_id: "u_123", status: "ACTIVE" };
  const head = { event_id: eventId, event_type: eventType, occurred_at: occurredAt, ...user };
  return {
    eventId,
    eventType,
    subject: "account.events",
    aggregateKey: "u_123",
    occurredAt,
    headers: {},
    payload: encodeEvent(eventType, { ...head, ...fields }),
    redelivered: false,
  };
}

/** The delivery of an order that the API-key holder "desk" placed, for a user if one is given. */
export function orderDelivery(n: number, user_id?: string): Delivery {
  const [eventId, occurredAt] = [fixedId(n), "2026-01-08T07:10:00.123456Z"];
  const head = { event_id: eventId, event_type: "OrderAccepted", occurred_at: occurredAt, version: 1 };
  const order = { order_id: `o_${n}`, client_order_id: `tdk-${n}`, instrument: "BTC-USD", side: "BUY", qty: "0.5" };
  return {
    eventId,
    eventType: "OrderAccepted",
    subject: "orders.events",
    aggregateKey: order.client_order_id,
    occurredAt,
    headers: {},
    payload: encodeEvent("OrderAccepted", { ...head, ...order, caller: "desk", ...(user_id && { user_id }) }),
    redelivered: false,
  };
}

/** The delivery of a match; tickets and teams are numbered in the order of the users. */
export function matchDelivery(n: number, userIds: readonly string[]): Delivery {
  const [eventId, occurredAt] = [fixedId(n), "2026-01-08T07:10:00.123456Z"];
  const matchId = `m_${n}`;
  const players = userIds.map((user_id, index) => ({
    user_id,
    ticket_id: `t_${index + 1}`,
    team: index + 1,
    party_size: 1,
  }));
  const head = { event_id: eventId, event_type: "MatchMade", occurred_at: occurredAt, version: 1 };
  return {
    eventId,
    eventType: "MatchMade",
    subject: "matchmaking.events",
    aggregateKey: matchId,
    occurredAt,
    headers: {},
    payload: encodeEvent("MatchMade", { ...head, match_id: matchId, mode: "ranked", players }),
    redelivered: false,
  };
}

export interface FailingSender {
  readonly send: Send;
  /** The next `times` attempts fail. */
  fail(times: number): void;
  /** The notification id of every attempt, in order. */
  readonly attempted: readonly string[];
}

/** A sender that sends nothing and fails on demand. */
export function failingSender(): FailingSender {
  let failures = 0;
  const attempted: string[] = [];
  return {
    attempted,
    fail(times) {
      failures = times;
    },
    async send({ notificationId }) {
      attempted.push(notificationId);
      if (failures-- > 0) throw new Error("the receiver is busy");
      return done;
    },
  };
}
