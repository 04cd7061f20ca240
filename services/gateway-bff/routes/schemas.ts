/** What the gateway's routes take and answer, where more than one of them does. */
import { Type } from "typebox";

/** As account makes them: lower case, so that a user has one name and no other. */
export const UserId = Type.String({
  pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
});
export const Time = Type.String({ format: "date-time" });
export const Reason = Type.String({ minLength: 1, maxLength: 500, description: "Kept in the audit." });

export const UserView = Type.Object({
  user_id: UserId,
  status: Type.Union([Type.Literal("ACTIVE"), Type.Literal("SUSPENDED"), Type.Literal("DELETED")]),
  display_name: Type.Optional(Type.String()),
  locale: Type.Optional(Type.String()),
  email: Type.Optional(Type.String()),
  roles: Type.Array(Type.Union([Type.Literal("USER"), Type.Literal("ADMIN")])),
  version: Type.Integer({ minimum: 1, description: "Rises with every change; the ETag is made of it." }),
  suspended_until: Type.Optional(Time),
  suspended_reason: Type.Optional(Type.String()),
  created_at: Time,
  updated_at: Time,
});

/** Where a service says in its own description what is in the answer. */
export const AsTheServiceSays = Type.Object({}, { additionalProperties: true });

/** As matchmaking has them: a mode's name, and ids that begin with it. */
const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const Mode = Type.String({ maxLength: 32, pattern: `^${modePattern}$`, examples: ["duel"] });
export const TicketId = Type.String({
  maxLength: 61,
  pattern: `^${modePattern}\\.[A-Za-z0-9_-]{28}$`,
  examples: ["duel.tZ0cWTr2w8wVnQ5bYxk1mO7PqLsd"],
});
