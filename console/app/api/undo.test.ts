import { expect, test } from "vitest";
import type { AuditAct } from "./types.ts";
import { oppositeOf } from "./undo.ts";

const act = (name: string, details: Record<string, unknown> = {}): AuditAct => ({
  service: "account",
  act_id: "7",
  at: "2026-01-01T00:00:00Z",
  actor: "user:u_9",
  role: "OPERATOR",
  act: name,
  target: "u_1",
  reason: "a mistake",
  details,
  undoes: null,
  undone_by: null,
});
const undo = (name: string, details?: Record<string, unknown>) => oppositeOf(act(name, details))?.("undone");

test.each([
  ["suspendUser", {}, "/v1/admin/users/u_1:reinstate", { reason: "undone" }],
  ["reinstateUser", {}, "/v1/admin/users/u_1:suspend", { reason: "undone" }],
  ["grantRole", { role: "VIEWER" }, "/v1/admin/users/u_1:revoke-role", { reason: "undone", role: "VIEWER" }],
  ["revokeRole", { role: "ADMIN" }, "/v1/admin/users/u_1:grant-role", { reason: "undone", role: "ADMIN" }],
  [
    "grantEntitlementAsStaff",
    { stock_keeping_unit: "hat" },
    "/v1/admin/users/u_1/entitlement-revokes",
    { stock_keeping_unit: "hat", reason: "undone", undoes: "7" },
  ],
  [
    "adjustPoints",
    { direction: "add", point_amount: "5" },
    "/v1/admin/users/u_1/point-adjustments",
    { direction: "spend", point_amount: "5", reason: "undone", undoes: "7" },
  ],
])("%s is undone by its opposite", (name, details, path, body) => {
  expect(undo(name, details)).toEqual({ path, body });
});

test.each(["redriveDeadLetters", "discardDeadLetters", "setTradingState", "endUserSessions", "unheardOf"])(
  "%s cannot be undone here",
  (name) => {
    expect(undo(name)).toBeUndefined();
  },
);
