/**
 * A player's user inbox, as a list and as a stream, in the player's language. Notification guarantees the order, and that
 * nothing is lost or doubled between the list and the stream; its IDs are passed on unchanged.
 */

import type { OutgoingHttpHeaders } from "node:http";
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { type Language, requestLanguage } from "../language/accept-language.ts";
import { upstreamProblems } from "../problems.ts";
import { inboxInLanguage } from "../user-inbox/frames.ts";
import { openStream } from "../user-inbox/open-stream.ts";
import { passStream, sessionIsLive } from "../user-inbox/pass-stream.ts";
import { toSearch } from "./forward.ts";
import { Time } from "./schemas.ts";

export interface InboxDeps
  extends Pick<Deps, "authenticate" | "sessions" | "upstreams" | "tokenFor" | "streamTimeoutMs"> {
  /** Undefined if notification is not deployed. */
  readonly notificationUrl: URL | undefined;
}

const NotificationItem = named("Notification", {
  notification_id: Type.String(),
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  text: Type.String({ description: "English or Japanese, by Accept-Language." }),
  data: Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({
      title: "NotificationData",
      type: "object",
      additionalProperties: true,
      description: "Values for programs, such as the ids of a match. The README lists them by event type.",
      examples: [{ ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 1 }],
    }),
  ),
  occurred_at: Time,
});

const InboxView = named("NotificationPage", {
  notifications: Type.Array(NotificationItem),
  last_event_id: Type.Optional(
    Type.String({ description: "On the first page. A stream from here has everything that is not in the list." }),
  ),
  next_cursor: NextCursor,
});

const EventId = Type.String({ pattern: "^[0-9a-f.-]{1,60}$", description: "The ID of the last event that was seen." });
const StreamHeaders = Type.Object({ "last-event-id": Type.Optional(EventId) });
// A browser cannot set the header on its first connection. When it reconnects it sends both, and the header counts.
const StreamQuery = Type.Object({ last_event_id: Type.Optional(EventId) });

const NotificationStream = Type.String({
  title: "PlayerNotificationStream",
  description: "Server-sent events. The data of each `notification` is a Notification.",
});

const notDeployed = () => upstreamProblems.notification.unavailable("notification is not deployed here");

export function inboxRoutes(app: HttpApp, deps: InboxDeps): void {
  listRoute(app, deps);
  streamRoute(app, deps);
}

function listRoute(app: HttpApp, { authenticate, upstreams: { notification } }: InboxDeps): void {
  app.get(
    "/v1/inbox",
    guarded(
      authenticate,
      { user: "any" },
      {
        operationId: "listInbox",
        summary: "List notifications",
        tags: ["Notifications"],
        description: "Returns the notifications of the player, newest first, in the language of the request.",
        querystring: Type.Object(PageQuery),
        passesOnRefusals: true,
        refusals: Object.values(upstreamProblems.notification),
        response: { 200: InboxView },
      },
    ),
    async (request, reply) => {
      if (!notification) throw notDeployed();
      const user = sessionUser(request);
      const language = requestLanguage(request);
      const path = `/v1/users/${encodeURIComponent(user.userId)}/inbox?${toSearch(request.query)}`;
      const { value } = await notification.call({ method: "GET", path, user, requestId: request.id });
      reply.headers(languageHeaders(language));
      return inboxInLanguage(value, language);
    },
  );
}

function streamRoute(app: HttpApp, deps: InboxDeps): void {
  const { notificationUrl, tokenFor, streamTimeoutMs } = deps;
  const open = new Set<AbortController>();
  // Before the server waits for open responses: a stream would never end.
  app.addHook("preClose", async () => {
    for (const leave of open) leave.abort();
  });
  const users = requires(deps.authenticate, { user: "any" });
  app.get(
    "/v1/inbox/stream",
    {
      ...users,
      config: { ...users.config, longLived: true },
      exposeHeadRoute: false, // A HEAD request would open an unread stream.
      schema: {
        operationId: "followInbox",
        summary: "Follow notifications",
        tags: ["Notifications"],
        description:
          "Streams the notifications of the player as server-sent events: all after `Last-Event-ID`, or new ones only if it is missing.",
        headers: StreamHeaders,
        querystring: StreamQuery,
        produces: ["text/event-stream"],
        passesOnRefusals: true,
        refusals: Object.values(upstreamProblems.notification),
        response: { 200: NotificationStream },
      },
    },
    async (request, reply) => {
      const leave = new AbortController();
      reply.raw.once("close", () => leave.abort());
      if (reply.raw.destroyed) return reply.hijack(); // The client left during authentication.
      if (!notificationUrl) throw notDeployed();
      open.add(leave);
      try {
        const language = requestLanguage(request);
        const lastEventId = request.headers["last-event-id"] ?? request.query.last_event_id;
        const user = sessionUser(request);
        const events = await openStream({
          url: new URL(`/v1/users/${encodeURIComponent(user.userId)}/inbox/stream`, notificationUrl),
          token: await tokenFor("notification", user),
          requestId: request.id,
          ...(lastEventId !== undefined && { lastEventId }),
          ...(streamTimeoutMs !== undefined && { timeoutMs: streamTimeoutMs }),
          leave,
        });
        reply.headers({ ...streamHeaders, ...languageHeaders(language) }).hijack();
        const response = reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
        response.flushHeaders(); // Or the client of a quiet inbox would wait for them until the first event.
        const isLive = () => sessionIsLive(request.session, deps.sessions);
        await passStream(events, { response, language, isLive, leave });
      } finally {
        open.delete(leave);
      }
      return reply;
    },
  );
}

export const languageHeaders = (language: Language) => ({ "content-language": language, vary: "accept-language" });

const streamHeaders = {
  "content-type": "text/event-stream",
  "x-accel-buffering": "no", // Keeps proxies from buffering events.
};
