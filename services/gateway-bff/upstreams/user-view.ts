/** A user as account returns it, and the copy that the gateway keeps of it. */
import { UserView } from "@todoke/contracts/api";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { upstreamProblems } from "../problems.ts";
import type { UserSnapshot } from "../sessions/index.ts";

/** As account makes them: lower case, so that a user has one spelling. */
export const UserId = Type.String({
  pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
});
export const Time = Type.String({ format: "date-time" });

const CheckedUser = Type.Object({ ...UserView.properties, user_id: UserId });

/** Throws if the response is no user: a guess could let the wrong user in. */
export function parseUser(response: unknown): UserSnapshot {
  if (!Value.Check(CheckedUser, response))
    throw upstreamProblems.account.badGateway("account: its response is no user");
  const { user_id: userId, status, roles, version, suspended_until: suspendedUntil } = response;
  return { userId, status, roles, version, ...(suspendedUntil !== undefined && { suspendedUntil }) };
}
