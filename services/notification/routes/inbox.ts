/** What a user was told, is being told, and could not be told: for those who run the service (seed 000). */
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import { type InboxEntry, selectInbox } from "../store/notifications.ts";
import { Limit, NotificationStatus, ProgramData, TextView, Time, UserId, Uuid } from "./views.ts";

const InboxEntryView = Type.Object({
  notification_id: Uuid,
  event_id: Uuid,
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  text: TextView,
  data: Type.Optional(ProgramData),
  status: NotificationStatus,
  attempt_count: Type.Integer({ minimum: 0 }),
  occurred_at: Time,
  created_at: Time,
  next_retry_at: Type.Optional(Time),
  sent_at: Type.Optional(Time),
  last_error: Type.Optional(Type.String()),
});

const InboxView = Type.Object({
  user_id: UserId,
  notifications: Type.Array(InboxEntryView),
  next_cursor: Type.Optional(Type.String()),
});

const InboxQuery = Type.Object({
  limit: Limit,
  // Microseconds since 1970 and an id: checked here to the last digit, so that no cursor can fail in the database.
  cursor: Type.Optional(
    Type.String({ pattern: "^-?[0-9]{1,16}\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", maxLength: 60 }),
  ),
});

const usualLimit = 50;

export function inboxRoutes(app: HttpApp, { db }: { readonly db: Db }): void {
  app.get(
    "/debug/notification/inbox/:user_id",
    {
      schema: {
        operationId: "showInbox",
        summary: "A user's notifications, newest first",
        params: Type.Object({ user_id: UserId }),
        querystring: InboxQuery,
        response: { 200: InboxView },
      },
    },
    async (request) => {
      const { user_id } = request.params;
      const { limit = usualLimit, cursor } = request.query;
      // One more than asked for: whether there is a next page is seen, not counted.
      const entries = await selectInbox(db, { userId: user_id, limit: limit + 1, ...(cursor && { after: cursor }) });
      const shown = entries.slice(0, limit);
      const next = entries.length > limit ? shown.at(-1)?.cursor : undefined;
      return { user_id, notifications: shown.map(view), ...(next !== undefined && { next_cursor: next }) };
    },
  );
}

/** What is not known yet is left out. */
function view({ cursor: _, data, next_retry_at, sent_at, last_error, ...entry }: InboxEntry) {
  return {
    ...entry,
    ...(data !== null && { data }),
    ...(next_retry_at !== null && { next_retry_at }),
    ...(sent_at !== null && { sent_at }),
    ...(last_error !== null && { last_error }),
  };
}
