/** The schemas of requests and responses; they are the contract. */
import { named, Role, UserView } from "@todoke/contracts/api";
import { Type } from "typebox";

export const UserId = Type.String({
  minLength: 1,
  maxLength: 128,
  examples: ["01a1df39-ea33-7000-ba4d-967d2e0fabc4"],
});
export const DisplayNamesView = named("DisplayNames", {
  users: Type.Array(named("NamedUser", { user_id: UserId, display_name: Type.String() })),
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

export const ResolveBody = named("ResolveIdentityRequest", {
  provider: Provider,
  subject: Subject,
  email: Type.Optional(Email),
  email_verified: Type.Optional(Type.Boolean({ description: "Whether the provider has verified the address." })),
  display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, examples: ["Aki"] })),
  locale: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "A BCP 47 language tag.", examples: ["ja-JP"] }),
  ),
});

/** For the documentation. The route checks the header, because a missing one is 428 and not 400. */
export const IfMatchHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({ description: "Required: the ETag of the user as you last read it.", examples: ['"3"'] }),
  ),
});

export const SearchQuery = {
  user_id: Type.Optional(UserId),
  email: Type.Optional(Type.String({ ...Email, description: "The whole address; upper and lower case are equal." })),
  provider: Type.Optional(Type.String({ ...Provider, description: "Requires `subject`." })),
  subject: Type.Optional(Type.String({ ...Subject, description: "Requires `provider`." })),
  name: Type.Optional(
    Type.String({
      minLength: 3,
      maxLength: 100,
      description: "The beginning of the name, 3 characters at least; upper and lower case are equal.",
    }),
  ),
};

export const AuditView = named("AuditEntry", {
  audit_id: Type.Integer({ format: "int64", description: "The position in the audit." }),
  user_id: UserId,
  version: Type.Integer({ format: "int64", description: "The version of the user after the change." }),
  actor: Type.String({ description: "user:<id>, service:<name> or todoke:<part>." }),
  action: Type.String({ description: "What was done.", examples: ["SUSPEND"] }),
  reason: Type.Optional(Type.String()),
  before: Type.Unknown({ description: "The changed fields before the change." }),
  after: Type.Unknown({ description: "The same fields after the change." }),
  created_at: time,
});

export const ExportView = {
  user: UserView,
  identities: Type.Array(
    named("Identity", {
      provider: Provider,
      subject: Subject,
      email: Type.Optional(Type.String()),
      email_verified: Type.Optional(Type.Boolean()),
      display_name: Type.Optional(Type.String()),
      locale: Type.Optional(Type.String()),
      created_at: time,
      updated_at: time,
    }),
    { description: "The identities by which the user can log in, with the claims of each." },
  ),
  roles: Type.Array(named("GrantedRole", { role: Role, granted_at: time })),
  audit: Type.Array(AuditView, { description: "Newest first; older rows by `cursor`." }),
};
