import { decodeEvent, type EventType, encodeEvent, events } from "@todoke/contracts";
import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { textOf } from "./templates.ts";

const entitlement = { stock_keeping_unit: "item1", source: "purchase", source_id: "p_456" };
const time = "2026-01-08T07:00:00Z";

/** What each type of event says besides its head. */
const said: Record<EventType, object> = {
  EntitlementGranted: entitlement,
  EntitlementRevoked: entitlement,
  EntitlementExpired: { ...entitlement, expires_at: time },
  AccountCreated: { status: "ACTIVE" },
  AccountSuspended: { status: "SUSPENDED", reason: "cheating", suspended_until: time },
  AccountReinstated: { status: "ACTIVE", reason: "it was a mistake" },
  AccountRolesChanged: { status: "ACTIVE", roles: "ADMIN,USER" },
  AccountDeleted: { status: "DELETED" },
};

function told<Type extends EventType>(event_type: Type, more: object = {}) {
  const head = { event_id: fixedId(1), event_type, occurred_at: "2026-01-08T07:10:00Z", version: 1, user_id: "u_123" };
  return textOf(
    event_type,
    decodeEvent(event_type, encodeEvent(event_type, { ...head, ...said[event_type], ...more })),
  );
}

const silent: readonly EventType[] = ["AccountRolesChanged", "AccountDeleted"];

test("every event that concerns its user has words of its own, in English and in Japanese", () => {
  const types = (Object.keys(events) as EventType[]).filter((type) => !silent.includes(type));
  const texts = types.map((type) => told(type));
  for (const text of texts) {
    expect(text?.en).toMatch(/^[\x20-\x7e]+$/);
    expect(text?.ja).toMatch(/[\u3040-\u30ff]/);
  }
  expect(new Set(texts.map((text) => text?.en)).size).toBe(types.length);
  expect(new Set(texts.map((text) => text?.ja)).size).toBe(types.length);
  for (const type of silent) expect(told(type)).toBeUndefined();
});

test("a product is named, and a suspension says why, and until when if it ends", () => {
  for (const type of ["EntitlementGranted", "EntitlementRevoked", "EntitlementExpired"] as const) {
    expect(told(type)).toEqual({ en: expect.stringContaining("item1"), ja: expect.stringContaining("item1") });
  }
  expect(told("AccountSuspended")).toEqual({
    en: "Your account is suspended until 2026-01-08 07:00 UTC. Reason: cheating",
    ja: "アカウントが 2026-01-08 07:00 UTC まで停止されました。理由: cheating",
  });
  expect(told("AccountSuspended", { suspended_until: null })).toEqual({
    en: "Your account is suspended. Reason: cheating",
    ja: "アカウントが停止されました。理由: cheating",
  });
});
