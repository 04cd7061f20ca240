/** Schemas that several routes share. */
import { Type } from "typebox";

export { Time, UserId, UserView } from "../upstreams/user-view.ts";

/** As account has it. */
export const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "The reason, which is stored in the audit.",
  examples: ["requested by mail"],
});

/** A response that the service's own API document describes. */
export const PassThroughBody = Type.Object(
  {},
  {
    title: "ServiceResponse",
    additionalProperties: true,
    description: "The response of the service, unchanged. Its own document describes it, under the same operationId.",
  },
);

/** As matchmaking has them: the name of a mode, and IDs that begin with it. */
const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const Mode = Type.String({ maxLength: 32, pattern: `^${modePattern}$`, examples: ["duel"] });
export const TicketId = Type.String({
  maxLength: 61,
  pattern: `^${modePattern}\\.[A-Za-z0-9_-]{28}$`,
  examples: ["duel.tZ0cWTr2w8wVnQ5bYxk1mO7PqLsd"],
});
