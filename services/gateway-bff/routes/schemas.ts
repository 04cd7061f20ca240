/** Schemas that several routes share. */
import { Type } from "typebox";

export { Time, UserId, UserView } from "../upstreams/user-view.ts";

export const Reason = Type.String({ minLength: 1, maxLength: 500, description: "Stored in the audit log." });

/** A response that the service's own API document describes. */
export const PassThroughBody = Type.Object({}, { additionalProperties: true });

/** As matchmaking has them: the name of a mode, and IDs that begin with it. */
const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const Mode = Type.String({ maxLength: 32, pattern: `^${modePattern}$`, examples: ["duel"] });
export const TicketId = Type.String({
  maxLength: 61,
  pattern: `^${modePattern}\\.[A-Za-z0-9_-]{28}$`,
  examples: ["duel.tZ0cWTr2w8wVnQ5bYxk1mO7PqLsd"],
});
