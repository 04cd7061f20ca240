/** What the routes take and answer. The schemas are the contract. */
import { type Static, Type } from "typebox";
import { displayNamePattern } from "../profile.ts";

export const UserId = Type.String({
  minLength: 1,
  maxLength: 128,
  examples: ["01a1df39-ea33-7000-ba4d-967d2e0fabc4"],
});
export const OneUser = Type.Object({ user_id: UserId });

const time = Type.String({ format: "date-time" });
const Provider = Type.String({
  minLength: 1,
  maxLength: 256,
  description: "The issuer.",
  examples: ["https://id.example"],
});
const Subject = Type.String({
  minLength: 1,
  maxLength: 255,
  description: "Whom the issuer means.",
  examples: ["248289"],
});
const Email = Type.String({ minLength: 1, maxLength: 320, examples: ["aki@example.com"] });
const Role = Type.Union([Type.Literal("USER"), Type.Literal("ADMIN")]);

export const UserView = Type.Object({
  user_id: UserId,
  status: Type.Union([
    Type.Literal("ACTIVE"),
    Type.Literal("SUSPENDED", { description: "May do nothing, until `suspended_until` or for ever." }),
    Type.Literal("DELETED", { description: "What was known of the person is gone." }),
  ]),
  display_name: Type.Optional(Type.String()),
  locale: Type.Optional(Type.String({ description: "BCP 47." })),
  email: Type.Optional(Type.String({ description: "As the provider last told it. It names nobody." })),
  roles: Type.Array(Role),
  version: Type.Integer({ minimum: 1, description: "Rises by one with every change; the ETag is this in quotes." }),
  suspended_until: Type.Optional(time),
  suspended_reason: Type.Optional(Type.String()),
  created_at: time,
  updated_at: time,
});

export const ResolveBody = Type.Object({
  provider: Provider,
  subject: Subject,
  email: Type.Optional(Email),
  email_verified: Type.Optional(Type.Boolean()),
  display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, examples: ["Aki"] })),
  locale: Type.Optional(Type.String({ minLength: 1, maxLength: 64, examples: ["ja-JP"] })),
});

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ["string", "null"] });

export const ProfileBody = Type.Object(
  {
    display_name: Type.Optional(
      orNull({
        minLength: 1,
        maxLength: 100,
        pattern: displayNamePattern,
        description: "One line. null takes it away.",
        examples: ["Aki"],
      }),
    ),
    locale: Type.Optional(
      orNull({ minLength: 2, maxLength: 35, description: "BCP 47. null takes it away.", examples: ["ja-JP"] }),
    ),
  },
  { minProperties: 1 },
);

/** It says only what the header is for; what it must be, and that it must be there, is said by the route. */
export const IfMatchHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({ description: "Required: the ETag of the user as you last saw it.", examples: ['"3"'] }),
  ),
});

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Why; kept.",
  examples: ["asked for by mail"],
});

export const ReasonBody = Type.Object({ reason: Reason });

export const SuspendBody = Type.Object({
  reason: Type.String({ ...Reason, description: "Why; kept, and told to the user.", examples: ["cheating"] }),
  until: Type.Optional(
    Type.String({
      format: "date-time",
      // Not the leap seconds and the distant years that the format also has and nobody can keep.
      pattern: "^2\\d{3}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
      description: "When it ends by itself, to the millisecond; never, if not given. In the future.",
      examples: ["2999-01-31T09:30:00Z"],
    }),
  ),
});

export const RoleBody = Type.Object({
  role: Type.Literal("ADMIN", { description: "USER comes with the account, and goes with it." }),
  reason: Reason,
});

export const SearchQuery = {
  user_id: Type.Optional(UserId),
  email: Type.Optional(Type.String({ ...Email, description: "Whole, in capitals or not." })),
  provider: Type.Optional(Type.String({ ...Provider, description: "Together with `subject`." })),
  subject: Type.Optional(Type.String({ ...Subject, description: "Together with `provider`." })),
};

export const AuditView = Type.Object({
  audit_id: Type.Integer(),
  user_id: UserId,
  version: Type.Integer({ description: "Of the user, after the change." }),
  actor: Type.String({ description: "user:<id>, service:<name>, or todoke:<part of us>." }),
  action: Type.String({ examples: ["SUSPEND"] }),
  reason: Type.Optional(Type.String()),
  before: Type.Unknown({ description: "The fields that changed, as they were." }),
  after: Type.Unknown({ description: "The same, as they became." }),
  created_at: time,
});

export const ExportView = {
  user: UserView,
  identities: Type.Array(
    Type.Object({
      provider: Provider,
      subject: Subject,
      email: Type.Optional(Type.String()),
      email_verified: Type.Optional(Type.Boolean()),
      display_name: Type.Optional(Type.String()),
      locale: Type.Optional(Type.String()),
      created_at: time,
      updated_at: time,
    }),
  ),
  roles: Type.Array(Type.Object({ role: Role, granted_at: time })),
  audit: Type.Array(AuditView, { description: "What was changed, by whom; newest first, the rest by `cursor`." }),
};

export type Profile = Static<typeof ProfileBody>;
