/** What a user was told, is being told, and could not be told: for those who run the service (seed 000). */
import { cursorOf, type HttpApp, NextCursor, PageQuery, page } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import { type InboxEntry, selectInbox } from "../store/notifications.ts";
import { inboxCursor, Limit, NotificationStatus, ProgramData, TextView, Time, UserId, Uuid } from "./views.ts";

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
  next_cursor: NextCursor,
});

const InboxQuery = Type.Object({ ...PageQuery, limit: Limit });

const usualLimit = 50;

export function debugInboxRoutes(app: HttpApp, { db }: { readonly db: Db }): void {
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
    async ({ params: { user_id }, query }) => {
      const after = cursorOf(query, inboxCursor)?.join(inboxCursor.separator);
      const { rows, ...next } = await page(
        { limit: usualLimit, ...query },
        {
          read: (limit) => selectInbox(db, { userId: user_id, limit, ...(after !== undefined && { after }) }),
          name: ({ cursor }) => cursor,
        },
      );
      return { user_id, notifications: rows.map(view), ...next };
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
