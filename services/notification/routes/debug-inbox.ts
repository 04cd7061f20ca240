/** A user inbox with the state of every notification, for operators (seed 000). */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { type InboxEntry, selectInbox } from "../store/notifications.ts";
import { inboxCursor, Limit, NotificationData, NotificationStatus, TextView, Time, UserId, Uuid } from "./views.ts";

const InboxEntryView = named("InboxEntry", {
  notification_id: Uuid,
  event_id: Uuid,
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  text: TextView,
  data: Type.Optional(NotificationData),
  status: NotificationStatus,
  attempt_count: Type.Integer({ minimum: 0 }),
  occurred_at: Time,
  created_at: Time,
  next_retry_at: Type.Optional(Time),
  sent_at: Type.Optional(Time),
  last_error: Type.Optional(Type.String()),
});

const InboxView = named("InboxEntryPage", {
  user_id: UserId,
  notifications: Type.Array(InboxEntryView),
  next_cursor: NextCursor,
});

const InboxQuery = Type.Object({ ...PageQuery, limit: Limit });

const defaultLimit = 50;

const inboxSchema = {
  summary: "List notifications with their status",
  tags: ["Operations"],
  description: "Returns the notifications of a user, newest first, with what the sender did.",
  params: Type.Object({ user_id: UserId }),
  querystring: InboxQuery,
  response: { 200: InboxView },
};

export function debugInboxRoutes(app: HttpApp, { db }: { readonly db: Db }): void {
  app.get(
    "/debug/notification/inbox/:user_id",
    { schema: { ...inboxSchema, operationId: "getInbox" } },
    ({ params, query }) => readInbox(db, params.user_id, query),
  );
}

/** The same for staff. */
export function staffInboxRoute(app: HttpApp, { db, authenticate }: Pick<Deps, "db" | "authenticate">): void {
  app.get(
    "/v1/admin/users/:user_id/notifications",
    guarded(authenticate, { staff: "VIEWER" }, { ...inboxSchema, operationId: "listUserNotifications" }),
    ({ params, query }) => readInbox(db, params.user_id, query),
  );
}

async function readInbox(db: Db, user_id: string, query: Static<typeof InboxQuery>) {
  const after = parseCursor(query, inboxCursor)?.join(inboxCursor.separator);
  const { rows, ...next } = await page(
    { limit: defaultLimit, ...query },
    {
      read: (limit) => selectInbox(db, { userId: user_id, limit, ...(after !== undefined && { after }) }),
      name: ({ cursor }) => cursor,
    },
  );
  return { user_id, notifications: rows.map(toEntryView), ...next };
}

/** Leaves out fields that are not set. */
function toEntryView({ cursor: _, data, next_retry_at, sent_at, last_error, ...entry }: InboxEntry) {
  return {
    ...entry,
    ...(data !== null && { data }),
    ...(next_retry_at !== null && { next_retry_at }),
    ...(sent_at !== null && { sent_at }),
    ...(last_error !== null && { last_error }),
  };
}
