/**
 * A user inbox, for the user: as a list, and as a stream.
 *
 * The list returns `last_event_id`, from which the stream continues, so that nothing is lost between the two. A notification
 * that is committed while the list is read may be in both, under the same id.
 */

import type { OutgoingHttpHeaders } from "node:http";
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { tooManyStreams } from "../problems.ts";
import { positionPattern, selectStart } from "../store/new-notifications.ts";
import { selectInbox } from "../store/notifications.ts";
import { toUserNotification } from "../stream/user-notification.ts";
import { inboxCursor, NotificationData, TextView, Time, UserId, Uuid } from "./views.ts";

const readers = { user: "own", staff: "VIEWER", key: "read" } as const;

const UserNotificationView = named("UserNotification", {
  notification_id: Uuid,
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  text: TextView,
  data: Type.Optional(NotificationData),
  occurred_at: Time,
});

const EventId = Type.String({
  pattern: `^${positionPattern}$`,
  maxLength: 60,
  description: "A position in the user inbox: the id of an event, or the `last_event_id` of a list.",
});

const UserInboxView = named("UserNotificationPage", {
  user_id: UserId,
  notifications: Type.Array(UserNotificationView),
  last_event_id: Type.Optional(EventId),
  next_cursor: NextCursor,
});

const NotificationStream = Type.String({
  title: "NotificationStream",
  description: "Server-sent events. The data of each `notification` is a UserNotification.",
});

export function userInboxRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  streamRoute(app, deps);
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/users/:user_id/inbox",
    guarded(authenticate, readers, {
      operationId: "listUserInbox",
      summary: "List notifications",
      tags: ["Notifications"],
      description:
        "Returns the notifications of a user, newest first. The first page has the `last_event_id` from which a stream continues.",
      params: Type.Object({ user_id: UserId }),
      querystring: Type.Object(PageQuery),
      response: { 200: UserInboxView },
    }),
    async ({ params: { user_id }, query }) => {
      const after = parseCursor(query, inboxCursor)?.join(inboxCursor.separator);
      // Read before the list: a notification in between is in both, and none is in neither.
      const start = after === undefined ? { last_event_id: (await selectStart(db, user_id)).latest } : {};
      const { rows, ...next } = await page(query, {
        read: (limit) => selectInbox(db, { userId: user_id, limit, ...(after !== undefined && { after }) }),
        name: ({ cursor }) => cursor,
      });
      return { user_id, notifications: rows.map(toUserNotification), ...start, ...next };
    },
  );
}

function streamRoute(app: HttpApp, { authenticate, db, streams }: Deps): void {
  // The server waits for open requests when it closes, and a stream would never end.
  app.addHook("preClose", async () => streams[Symbol.asyncDispose]());
  app.get(
    "/v1/users/:user_id/inbox/stream",
    {
      ...requires(authenticate, readers),
      exposeHeadRoute: false, // It would open a stream without a reader.
      schema: {
        operationId: "followUserInbox",
        summary: "Follow notifications",
        tags: ["Notifications"],
        description:
          "Streams the notifications of a user as server-sent events: all notifications after `Last-Event-ID`, or new ones only if it is missing. The event " +
          "`notification` has the JSON of the list. The event `reset` means that the id is unknown: list the inbox again.",
        params: Type.Object({ user_id: UserId }),
        headers: Type.Object({ "last-event-id": Type.Optional(EventId) }),
        // For the first connection of a browser, which cannot send the header. When it reconnects it sends both; the header wins.
        querystring: Type.Object({ last_event_id: Type.Optional(EventId) }),
        produces: ["text/event-stream"],
        refusals: [tooManyStreams],
        response: { 200: NotificationStream },
      },
    },
    async ({ params: { user_id }, query, headers }, reply) => {
      const lastSeen = headers["last-event-id"] ?? query.last_event_id;
      const { latest, isPast } = await selectStart(db, user_id, lastSeen);
      const position = lastSeen !== undefined && isPast ? lastSeen : latest;
      streams.open({ userId: user_id, position, isReset: !isPast }, () => {
        // Keeps proxies from buffering events.
        reply.headers({ "content-type": "text/event-stream", "x-accel-buffering": "no" }).hijack();
        return reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
      });
    },
  );
}
