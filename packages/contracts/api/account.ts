/** A user of account, and the bodies of the requests that change one. */
import { Type } from "typebox";
import { named, oneOf } from "./named.ts";
import { RequestTime } from "./request-time.ts";

const time = Type.String({ format: "date-time" });

export const Role = oneOf(["USER", "VIEWER", "OPERATOR", "ADMIN"], { title: "Role" });

const UserStatus = Type.Union(
  [
    Type.Literal("ACTIVE"),
    Type.Literal("SUSPENDED", { description: "The user may do nothing until `suspended_until`, or until reinstated." }),
    Type.Literal("DELETED", { description: "The personal data was erased." }),
  ],
  { title: "UserStatus" },
);

export const UserView = named("User", {
  user_id: Type.String({ minLength: 1, maxLength: 128, examples: ["01a1df39-ea33-7000-ba4d-967d2e0fabc4"] }),
  status: UserStatus,
  display_name: Type.Optional(
    Type.String({ description: "The name that the user chose, or that the provider sent.", examples: ["Aki"] }),
  ),
  locale: Type.Optional(Type.String({ description: "A BCP 47 language tag.", examples: ["ja-JP"] })),
  email: Type.Optional(Type.String({ description: "As the provider last sent it. It does not identify the user." })),
  roles: Type.Array(Role),
  // The column is a bigint.
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
  created_at: time,
  updated_at: time,
});

/**
 * One line of 1 to 100 characters, without a space at either end and without characters that hide or reverse the text
 * beside them: a display name is shown next to others.
 */
export const displayNamePattern =
  "^(?!\\s)(?!.*\\s$)[^\\p{Cc}\\p{Zl}\\p{Zp}\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]{1,100}$";

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ["string", "null"] });

export const UpdateUserBody = Type.Object(
  {
    display_name: Type.Optional(
      orNull({
        minLength: 1,
        maxLength: 100,
        pattern: displayNamePattern,
        description: "One line. null removes it.",
        examples: ["Aki"],
      }),
    ),
    locale: Type.Optional(
      orNull({
        minLength: 2,
        maxLength: 35,
        description: "A BCP 47 language tag. null removes it.",
        examples: ["ja-JP"],
      }),
    ),
  },
  { title: "UpdateUserRequest", minProperties: 1 },
);

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "The reason, which is stored in the audit.",
  examples: ["requested by mail"],
});

export const ReasonBody = named("ReasonRequest", { reason: Reason });

export const SuspendBody = named("SuspendUserRequest", {
  reason: Type.String({
    ...Reason,
    description: "The reason, which is stored in the audit and sent to the user.",
    examples: ["cheating"],
  }),
  until: Type.Optional(
    RequestTime({
      description:
        "When the suspension ends, to the millisecond. Must be in the future. Without it the suspension has no end.",
      examples: ["2999-01-31T09:30:00Z"],
    }),
  ),
});

export const RoleBody = named("RoleRequest", {
  role: oneOf(["VIEWER", "OPERATOR", "ADMIN"], {
    title: "StaffRole",
    description: "VIEWER reads, OPERATOR acts, ADMIN may do everything. Every account has the role USER.",
  }),
  reason: Reason,
});
