/**
 * A player's inbox, listed and live, in the player's language. What it promises about order, and that nothing is lost or
 * doubled between the list and the stream, or between two streams, is notification's: ids go through as they are.
 */
import { type HttpApp, NextCursor, PageQuery, requires } from "@todoke/http";
import { Type } from "typebox";
import { languageOf } from "../language.ts";
import { upstreamProblems } from "../problems.ts";
import type { Upstreams } from "../upstreams/index.ts";
import { inOneLanguage, type Told } from "./inbox-frames.ts";
import { type InboxStreamDeps, inboxStreamRoute } from "./inbox-stream.ts";
import { Time } from "./schemas.ts";
import { userOf } from "./user-of.ts";

export interface InboxDeps extends InboxStreamDeps {
  readonly upstreams: Pick<Upstreams, "notification">;
}

const InboxView = Type.Object({
  notifications: Type.Array(
    Type.Object({
      notification_id: Type.String(),
      event_type: Type.String({ examples: ["EntitlementGranted"] }),
      text: Type.String({ description: "In the language of Accept-Language: English or Japanese." }),
      data: Type.Optional(
        Type.Unsafe<Readonly<Record<string, unknown>>>({
          type: "object",
          additionalProperties: true,
          description: "For programs, where the event has something for them: the ids of a match, say.",
          examples: [{ ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 1 }],
        }),
      ),
      occurred_at: Time,
    }),
  ),
  last_event_id: Type.Optional(
    Type.String({ description: "On the first page: a stream from here on brings all that is not in the list." }),
  ),
  next_cursor: NextCursor,
});

/** As notification answers it. */
interface Listed {
  readonly notifications: readonly Told[];
  readonly last_event_id?: string;
  readonly next_cursor?: string;
}

export function inboxRoutes(app: HttpApp, deps: InboxDeps): void {
  inboxStreamRoute(app, deps);
  const { notification } = deps.upstreams;
  app.get(
    "/v1/inbox",
    {
      ...requires(deps.authenticate, { user: "any" }),
      schema: {
        operationId: "listInbox",
        summary: "What the player was told, newest first",
        querystring: Type.Object(PageQuery),
        response: { 200: InboxView },
      },
    },
    async (request, reply) => {
      if (!notification) throw upstreamProblems.notification.unavailable("notification is not deployed here");
      const user = userOf(request);
      const language = languageOf(request);
      const asked = new URLSearchParams(Object.entries(request.query).map(([name, value]) => [name, String(value)]));
      const path = `/v1/users/${encodeURIComponent(user.userId)}/inbox?${asked}`;
      const { value } = await notification.call({ method: "GET", path, user, requestId: request.id });
      const { notifications, last_event_id, next_cursor } = value as Listed;
      reply.header("content-language", language).header("vary", "accept-language");
      return {
        notifications: notifications.map((told) => inOneLanguage(told, language)),
        ...(last_event_id !== undefined && { last_event_id }),
        ...(next_cursor !== undefined && { next_cursor }),
      };
    },
  );
}
