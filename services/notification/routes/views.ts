/** Schemas that several routes share. */
import { oneOf, orNull } from "@todoke/contracts/api";
import { type TSchema, Type } from "typebox";
import type { Data } from "../events/templates.ts";

export const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["u_123"] });
// Not the format "uuid", which also allows "urn:uuid:…".
export const Uuid = Type.String({ pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" });
export const Time = Type.String({ format: "date-time" });
export const TextView = Type.Object(
  { en: Type.String(), ja: Type.String() },
  { title: "LocalizedText", description: "The text in English and Japanese." },
);
export const NotificationData = Type.Unsafe<Data>({
  title: "NotificationData",
  type: "object",
  additionalProperties: true,
  description: "Values for programs, such as the ids of a match. The README lists them by event type.",
  examples: [{ ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 1 }],
});
export const NotificationStatus = oneOf(["PENDING", "PROCESSING", "SENT", "FAILED"], { title: "NotificationStatus" });
export const Limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 100, description: "Rows per page at most; the default is 50." }),
);
/** A positive number that fits a bigint. */
export const DlqId = Type.String({ pattern: "^[1-9][0-9]{0,17}$", examples: ["17"] });
/** The cursor of a user inbox, as the store writes it: microseconds since 1970, a point, the id. */
export const inboxCursor = { parts: ["epochMicros", "uuid"], separator: "." } as const;
export const Nullable = <View extends TSchema>(view: View) => orNull(view);
