/** A user's own sessions: where they are logged in, and how to end that. */
import { type HttpApp, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { sessionNotFound } from "../problems.ts";
import { logSecurity } from "../security-log.ts";
import type { ListedSession } from "../sessions/index.ts";
import { Time } from "./schemas.ts";
import { userOf } from "./user-of.ts";

const SessionId = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });

const SessionView = Type.Object({
  session_id: SessionId,
  client: Type.Union([Type.Literal("browser"), Type.Literal("native")]),
  user_agent: Type.Optional(Type.String()),
  created_at: Time,
  last_seen_at: Time,
  ends_at: Type.String({ format: "date-time", description: "At the latest; sooner when it is not used." }),
  current: Type.Boolean({ description: "The one that asks." }),
});

export function sessionRoutes(app: HttpApp, { authenticate, sessions }: Pick<Deps, "authenticate" | "sessions">): void {
  const users = requires(authenticate, { user: "any" });

  app.get(
    "/v1/sessions",
    {
      ...users,
      schema: {
        operationId: "listSessions",
        summary: "Where the user is logged in, newest first",
        response: { 200: Type.Object({ sessions: Type.Array(SessionView) }) },
      },
    },
    async (request) => {
      const listed = await sessions.list(userOf(request).userId);
      return { sessions: listed.map((session) => viewOf(session, request.session?.sessionId)) };
    },
  );

  app.delete(
    "/v1/sessions/:session_id",
    {
      ...users,
      schema: {
        operationId: "endSession",
        summary: "Ends one session",
        params: Type.Object({ session_id: SessionId }),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const ended = await sessions.end(userOf(request).userId, request.params.session_id);
      if (!ended) throw sessionNotFound("the user has no session of this name");
      logSecurity(request, "session ended", { session_id: request.params.session_id });
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/v1/sessions::revoke-others",
    {
      ...users,
      schema: {
        operationId: "endOtherSessions",
        summary: "Ends every session but this one",
        response: { 200: Type.Object({ ended: Type.Integer({ minimum: 0 }) }) },
      },
    },
    async (request) => {
      const except = request.session?.sessionId;
      const ended = await sessions.endAll(userOf(request).userId, except === undefined ? {} : { except });
      logSecurity(request, "session ended", { ended });
      return { ended };
    },
  );
}

function viewOf({ sessionId, userAgent, ...session }: ListedSession, current: string | undefined) {
  return {
    session_id: sessionId,
    client: session.client,
    ...(userAgent !== undefined && { user_agent: userAgent }),
    created_at: session.createdAt,
    last_seen_at: session.lastSeenAt,
    ends_at: session.endsAt,
    current: sessionId === current,
  };
}
