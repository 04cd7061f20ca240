import { decodeEvent, type EventType, encodeEvent, events } from "@todoke/contracts";
import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { draftsFor } from "./templates.ts";

const entitlement = { user_id: "u_123", stock_keeping_unit: "item1", source: "purchase", source_id: "p_456" };
const time = "2026-01-08T07:00:00Z";

const points = { user_id: "u_123", transaction_id: "x_1", point_amount: "9223372036854775807", balance: 0 };
const reservation = { user_id: "u_123", reservation_id: "r_1", point_amount: 100, execute_at: time };
const order = {
  user_id: "u_123",
  order_id: "o_1",
  client_order_id: "tdk-1",
  instrument: "BTC-USD",
  side: "BUY",
  qty: "0.5",
};

/** The fields of each event type besides the envelope. */
const fields: Record<EventType, object> = {
  EntitlementGranted: entitlement,
  EntitlementRevoked: entitlement,
  EntitlementExpired: { ...entitlement, expires_at: time },
  AccountCreated: { user_id: "u_123", status: "ACTIVE" },
  AccountSuspended: { user_id: "u_123", status: "SUSPENDED", reason: "cheating", suspended_until: time },
  AccountReinstated: { user_id: "u_123", status: "ACTIVE", reason: "it was a mistake" },
  AccountRolesChanged: { user_id: "u_123", status: "ACTIVE", roles: "ADMIN,USER" },
  AccountDeleted: { user_id: "u_123", status: "DELETED" },
  MatchMade: {
    match_id: "m_1",
    mode: "ranked",
    players: [
      { user_id: "u_123", ticket_id: "t_1", team: 1, party_size: 1 },
      { user_id: "u_456", ticket_id: "t_2", team: 2, party_size: 1 },
    ],
  },
  TicketExpired: { user_id: "u_123", ticket_id: "t_1", mode: "ranked", reason: "heartbeat" },
  PointsGranted: points,
  PointsSpent: points,
  PointsExpired: points,
  PointReservationFailed: { ...reservation, reason: "relation is on fire" },
  PointReservationDue: reservation,
  OrderAccepted: order,
  OrderSucceeded: { ...order, broker_order_id: "b_1" },
  OrderFailed: { ...order, reason_code: "BROKER_REJECTED", reason: "the book is on fire" },
  OrderUnresolved: { ...order, reason_code: "BROKER_TIMEOUT" },
  OrderFilled: {
    ...order,
    trade_id: "t_1",
    fill_qty: "0.2",
    fill_price: "60000",
    filled_at: time,
    filled_qty: "0.2",
    average_price: "60000",
  },
};

function draftsOf<Type extends EventType>(event_type: Type, more: object = {}) {
  const head = { event_id: fixedId(1), event_type, occurred_at: "2026-01-08T07:10:00Z", version: 1 };
  return draftsFor(
    event_type,
    decodeEvent(event_type, encodeEvent(event_type, { ...head, ...fields[event_type], ...more })),
  );
}

const textOf = (event_type: EventType, more: object = {}) => draftsOf(event_type, more)[0]?.text;

const withoutNotification: readonly EventType[] = ["AccountRolesChanged", "AccountDeleted", "PointReservationDue"];

test("every event that notifies users has its own text in English and in Japanese", () => {
  const types = (Object.keys(events) as EventType[]).filter((type) => !withoutNotification.includes(type));
  const texts = types.map((type) => textOf(type));
  for (const text of texts) {
    expect(text?.en).toMatch(/^[\x20-\x7e]+$/);
    expect(text?.ja).toMatch(/[\u3040-\u30ff]/);
  }
  expect(new Set(texts.map((text) => text?.en)).size).toBe(types.length);
  expect(new Set(texts.map((text) => text?.ja)).size).toBe(types.length);
  for (const type of withoutNotification) expect(draftsOf(type)).toEqual([]);
});

test("texts name the product, and the reason and end of a suspension", () => {
  for (const type of ["EntitlementGranted", "EntitlementRevoked", "EntitlementExpired"] as const) {
    expect(textOf(type)).toEqual({ en: expect.stringContaining("item1"), ja: expect.stringContaining("item1") });
  }
  expect(textOf("AccountSuspended")).toEqual({
    en: "Your account is suspended until 2026-01-08 07:00 UTC. Reason: cheating",
    ja: "アカウントが 2026-01-08 07:00 UTC まで停止されました。理由: cheating",
  });
  expect(textOf("AccountSuspended", { suspended_until: null })).toEqual({
    en: "Your account is suspended. Reason: cheating",
    ja: "アカウントが停止されました。理由: cheating",
  });
});

test("matchmaking notifications have the ids of the user's own ticket", () => {
  expect(draftsOf("MatchMade").map(({ user_id, data }) => ({ user_id, data }))).toEqual([
    { user_id: "u_123", data: { ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 1 } },
    { user_id: "u_456", data: { ticket_id: "t_2", match_id: "m_1", mode: "ranked", team: 2 } },
  ]);
  const [expired] = draftsOf("TicketExpired");
  expect(expired?.data).toEqual({ ticket_id: "t_1", mode: "ranked", reason: "heartbeat" });
  expect(draftsOf("EntitlementGranted")[0]).not.toHaveProperty("data");
});

test("point amounts are exact, and the reason of a failed grant is hidden from the user", () => {
  expect(textOf("PointsGranted", { point_amount: 1, balance: 5, expires_at: time })).toEqual({
    en: "You got 1 point, to be used by 2026-01-08 07:00 UTC. You now have 5 points.",
    ja: "1 ポイントを獲得しました（有効期限 2026-01-08 07:00 UTC）。残高は 5 ポイントです。",
  });
  for (const type of ["PointsGranted", "PointsSpent", "PointsExpired"] as const) {
    const [{ text, data } = {}] = draftsOf(type);
    expect(text).toEqual({
      en: expect.stringContaining("9223372036854775807"),
      ja: expect.stringContaining("9223372036854775807"),
    });
    expect(data).toEqual({ transaction_id: "x_1", point_amount: "9223372036854775807", balance: "0" });
  }
  const [failed] = draftsOf("PointReservationFailed");
  expect(failed?.data).toEqual({ reservation_id: "r_1", point_amount: "100" });
  expect(JSON.stringify(failed)).not.toContain("fire");
});

test("an order that names no user_id creates no notification for its caller", () => {
  const types = ["OrderAccepted", "OrderSucceeded", "OrderFailed", "OrderUnresolved"] as const;
  for (const type of types) {
    expect(draftsOf(type, { user_id: undefined, caller: "desk" })).toEqual([]);
    expect(draftsOf(type, { caller: "desk" }).map(({ user_id }) => user_id)).toEqual(["u_123"]);
  }
});

test("an order notifies its user with the reason code, without the broker's words", () => {
  const [failed] = draftsOf("OrderFailed");
  expect(failed?.user_id).toBe("u_123");
  expect(failed?.data).toEqual({ order_id: "o_1", client_order_id: "tdk-1", reason_code: "BROKER_REJECTED" });
  expect(JSON.stringify(failed)).not.toContain("fire");
  expect(draftsOf("OrderAccepted")[0]?.data).not.toHaveProperty("reason_code");
});

test("a user whom an event lists twice gets one notification", () => {
  const players = [1, 2, 3].map((n) => ({ user_id: `u_${n % 2}`, ticket_id: `t_${n}`, team: n, party_size: 1 }));
  expect(draftsOf("MatchMade", { players }).map(({ user_id, data }) => [user_id, data?.ticket_id])).toEqual([
    ["u_1", "t_1"],
    ["u_0", "t_2"],
  ]);
});
