/**
 * What a user was told, for the user: listed by pages, and live.
 *
 * A list says from where on to follow, `last_event_id`, and nothing is lost between the two. What is committed in the very
 * moment of the list may be in both, under the same id.
 */
import type { OutgoingHttpHeaders } from "node:http";
import {
  type Authenticate,
  cursorOf,
  type HttpApp,
  NextCursor,
  PageQuery,
  ProblemView,
  page,
  requires,
} from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import { positionPattern, selectStart } from "../store/new-notifications.ts";
import { selectInbox } from "../store/notifications.ts";
import { toUserNotification } from "../stream/user-notification.ts";
import type { InboxStreams } from "../workers/inbox-streams.ts";
import { inboxCursor, ProgramData, TextView, Time, UserId, Uuid } from "./views.ts";

export interface UserInboxDeps {
  readonly authenticate: Authenticate;
  readonly db: Db;
  readonly live: InboxStreams;
}

const rule = { user: "own", admin: true, key: "read" } as const;

const UserNotificationView = Type.Object({
  notification_id: Uuid,
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  text: TextView,
  data: Type.Optional(ProgramData),
  occurred_at: Time,
});

const EventId = Type.String({
  pattern: `^${positionPattern}$`,
  maxLength: 60,
  description: "A place in the inbox, as an event's id or a list's `last_event_id` says it.",
});

const UserInboxView = Type.Object({
  user_id: UserId,
  notifications: Type.Array(UserNotificationView),
  last_event_id: Type.Optional(EventId),
  next_cursor: NextCursor,
});

export function userInboxRoutes(app: HttpApp, deps: UserInboxDeps): void {
  listRoute(app, deps);
  streamRoute(app, deps);
}

function listRoute(app: HttpApp, { authenticate, db }: UserInboxDeps): void {
  app.get(
    "/v1/users/:user_id/inbox",
    {
      ...requires(authenticate, rule),
      schema: {
        operationId: "listInbox",
        summary: "What a user was told, newest first",
        description: "The first page says from where on to follow: `last_event_id`.",
        params: Type.Object({ user_id: UserId }),
        querystring: Type.Object(PageQuery),
        response: { 200: UserInboxView },
      },
    },
    async ({ params: { user_id }, query }) => {
      const after = cursorOf(query, inboxCursor)?.join(inboxCursor.separator);
      // Before the list is read: what comes in between is in the list too, and nothing is in neither.
      const start = after === undefined ? { last_event_id: (await selectStart(db, user_id)).latest } : {};
      const { rows, ...next } = await page(query, {
        read: (limit) => selectInbox(db, { userId: user_id, limit, ...(after !== undefined && { after }) }),
        name: ({ cursor }) => cursor,
      });
      return { user_id, notifications: rows.map(toUserNotification), ...start, ...next };
    },
  );
}

function streamRoute(app: HttpApp, { authenticate, db, live }: UserInboxDeps): void {
  // Before the server waits for what it still owes: a stream would owe for ever.
  app.addHook("preClose", async () => live[Symbol.asyncDispose]());
  app.get(
    "/v1/users/:user_id/inbox/stream",
    {
      ...requires(authenticate, rule),
      exposeHeadRoute: false, // It would open a stream that nobody reads.
      schema: {
        operationId: "followInbox",
        summary: "What a user is told, as it happens (server-sent events)",
        description:
          "First what came after `Last-Event-ID`, or without one from now on; then live. Events are `notification`, with " +
          "the JSON of the list, and `reset`: the id is not known here any more, list the inbox anew.",
        params: Type.Object({ user_id: UserId }),
        headers: Type.Object({ "last-event-id": Type.Optional(EventId) }),
        // For a browser's first connection, which cannot have the header. When it comes back it has both: the header counts.
        querystring: Type.Object({ last_event_id: Type.Optional(EventId) }),
        produces: ["text/event-stream"],
        response: { 200: Type.String(), 429: ProblemView },
      },
    },
    async ({ params: { user_id }, query, headers }, reply) => {
      const lastSeen = headers["last-event-id"] ?? query.last_event_id;
      const { latest, isPast } = await selectStart(db, user_id, lastSeen);
      const position = lastSeen !== undefined && isPast ? lastSeen : latest;
      live.follow({ userId: user_id, position, isReset: !isPast }, () => {
        // Proxies that would collect events before they pass them on are told not to.
        reply.headers({ "content-type": "text/event-stream", "x-accel-buffering": "no" }).hijack();
        return reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
      });
    },
  );
}
