/** The schemas of requests and responses; they are the contract. */
import { RequestTime } from "@todoke/http";
import { type Static, Type } from "typebox";
import { displayNamePattern } from "../commands/update-user.ts";

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
  description: "The issuer of the identity.",
  examples: ["https://id.example"],
});
const Subject = Type.String({
  minLength: 1,
  maxLength: 255,
  description: "The user's id at the issuer.",
  examples: ["248289"],
});
const Email = Type.String({ minLength: 1, maxLength: 320, examples: ["aki@example.com"] });
const Role = Type.Union([Type.Literal("USER"), Type.Literal("ADMIN")], { title: "Role" });
/** The column is a bigint. */
const Version = (description: string) => Type.Integer({ format: "int64", minimum: 1, description, examples: [3] });

const UserStatus = Type.Union(
  [
    Type.Literal("ACTIVE"),
    Type.Literal("SUSPENDED", { description: "The user may do nothing until `suspended_until`, or until reinstated." }),
    Type.Literal("DELETED", { description: "The personal data was erased." }),
  ],
  { title: "UserStatus" },
);

export const UserView = Type.Object(
  {
    user_id: UserId,
    status: UserStatus,
    display_name: Type.Optional(
      Type.String({ description: "The name that the user chose, or that the provider sent.", examples: ["Aki"] }),
    ),
    locale: Type.Optional(Type.String({ description: "A BCP 47 language tag.", examples: ["ja-JP"] })),
    email: Type.Optional(Type.String({ description: "As the provider last sent it. It does not identify the user." })),
    roles: Type.Array(Role),
    version: Version("Rises by one with every change. The ETag is the version in quotes."),
    suspended_until: Type.Optional(
      Type.String({ format: "date-time", description: "When the suspension ends. Missing if it has no end." }),
    ),
    suspended_reason: Type.Optional(Type.String({ description: "Why the user is suspended." })),
    created_at: time,
    updated_at: time,
  },
  { title: "User" },
);

export const ResolveBody = Type.Object(
  {
    provider: Provider,
    subject: Subject,
    email: Type.Optional(Email),
    email_verified: Type.Optional(Type.Boolean({ description: "Whether the provider has verified the address." })),
    display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, examples: ["Aki"] })),
    locale: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: "A BCP 47 language tag.", examples: ["ja-JP"] }),
    ),
  },
  { title: "ResolveIdentityRequest" },
);

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ["string", "null"] });

export const ProfileBody = Type.Object(
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

/** For the documentation. The route checks the header, because a missing one is 428 and not 400. */
export const IfMatchHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({ description: "Required: the ETag of the user as you last read it.", examples: ['"3"'] }),
  ),
});

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "The reason, which is stored in the audit.",
  examples: ["requested by mail"],
});

export const ReasonBody = Type.Object({ reason: Reason }, { title: "ReasonRequest" });

export const SuspendBody = Type.Object(
  {
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
  },
  { title: "SuspendUserRequest" },
);

export const RoleBody = Type.Object(
  {
    role: Type.Literal("ADMIN", { description: "Every account has the role USER." }),
    reason: Reason,
  },
  { title: "RoleRequest" },
);

export const SearchQuery = {
  user_id: Type.Optional(UserId),
  email: Type.Optional(Type.String({ ...Email, description: "The whole address; upper and lower case are equal." })),
  provider: Type.Optional(Type.String({ ...Provider, description: "Requires `subject`." })),
  subject: Type.Optional(Type.String({ ...Subject, description: "Requires `provider`." })),
};

export const AuditView = Type.Object(
  {
    audit_id: Type.Integer({ format: "int64", description: "The position in the audit." }),
    user_id: UserId,
    version: Type.Integer({ format: "int64", description: "The version of the user after the change." }),
    actor: Type.String({ description: "user:<id>, service:<name> or todoke:<part>." }),
    action: Type.String({ description: "What was done.", examples: ["SUSPEND"] }),
    reason: Type.Optional(Type.String()),
    before: Type.Unknown({ description: "The changed fields before the change." }),
    after: Type.Unknown({ description: "The same fields after the change." }),
    created_at: time,
  },
  { title: "AuditEntry" },
);

export const ExportView = {
  user: UserView,
  identities: Type.Array(
    Type.Object(
      {
        provider: Provider,
        subject: Subject,
        email: Type.Optional(Type.String()),
        email_verified: Type.Optional(Type.Boolean()),
        display_name: Type.Optional(Type.String()),
        locale: Type.Optional(Type.String()),
        created_at: time,
        updated_at: time,
      },
      { title: "Identity" },
    ),
    { description: "The identities by which the user can log in, with the claims of each." },
  ),
  roles: Type.Array(Type.Object({ role: Role, granted_at: time }, { title: "GrantedRole" })),
  audit: Type.Array(AuditView, { description: "Newest first; older rows by `cursor`." }),
};

export type Profile = Static<typeof ProfileBody>;
