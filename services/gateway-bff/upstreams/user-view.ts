/** A user as account returns it, and the copy that the gateway keeps of it. */
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

/** As account describes it; a test compares the two documents. */
export const UserView = Type.Object(
  {
    user_id: Type.String({ minLength: 1, maxLength: 128, examples: ["01a1df39-ea33-7000-ba4d-967d2e0fabc4"] }),
    status: Type.Union(
      [
        Type.Literal("ACTIVE"),
        Type.Literal("SUSPENDED", {
          description: "The user may do nothing until `suspended_until`, or until reinstated.",
        }),
        Type.Literal("DELETED", { description: "The personal data was erased." }),
      ],
      { title: "UserStatus" },
    ),
    display_name: Type.Optional(
      Type.String({ description: "The name that the user chose, or that the provider sent.", examples: ["Aki"] }),
    ),
    locale: Type.Optional(Type.String({ description: "A BCP 47 language tag.", examples: ["ja-JP"] })),
    email: Type.Optional(Type.String({ description: "As the provider last sent it. It does not identify the user." })),
    roles: Type.Array(Type.Union([Type.Literal("USER"), Type.Literal("ADMIN")], { title: "Role" })),
    version: Type.Integer({
      format: "int64",
      minimum: 1,
      description: "Rises by one with every change. The ETag is the version in quotes.",
      examples: [3],
    }),
    suspended_until: Type.Optional(
      Type.String({ format: "date-time", description: "When the suspension ends. Missing if it has no end." }),
    ),
    suspended_reason: Type.Optional(Type.String({ description: "Why the user is suspended." })),
    created_at: Time,
    updated_at: Time,
  },
  { title: "User" },
);

const CheckedUser = Type.Object({ ...UserView.properties, user_id: UserId });

/** Throws if the response is no user: a guess could let the wrong user in. */
export function parseUser(response: unknown): UserSnapshot {
  if (!Value.Check(CheckedUser, response))
    throw upstreamProblems.account.badGateway("account: its response is no user");
  const { user_id: userId, status, roles, version, suspended_until: suspendedUntil } = response;
  return { userId, status, roles, version, ...(suspendedUntil !== undefined && { suspendedUntil }) };
}
