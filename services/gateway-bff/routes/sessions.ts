/** A user's own sessions. */
import { named, oneOf } from "@todoke/contracts/api";
import { guarded, type HttpApp } from "@todoke/http";
import { Type } from "typebox";
import { endOtherSessions } from "../commands/end-other-sessions.ts";
import { endSession } from "../commands/end-session.ts";
import type { Deps } from "../deps.ts";
import { logSecurity } from "../guard/security-log.ts";
import { sessionUser } from "../guard/session-user.ts";
import { sessionNotFound } from "../problems.ts";
import type { ListedSession } from "../sessions/index.ts";
import { Time } from "./schemas.ts";

const SessionId = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });

const SessionView = named("Session", {
  session_id: SessionId,
  client: oneOf(["browser", "native"], {
    description: "A browser with a cookie, or a program with a token.",
  }),
  user_agent: Type.Optional(Type.String()),
  created_at: Time,
  last_seen_at: Type.String({ format: "date-time", description: "When the session was last used." }),
  ends_at: Type.String({ format: "date-time", description: "The end by age; an unused session ends sooner." }),
  current: Type.Boolean({ description: "Whether the request uses this session." }),
});

const SessionsView = named("SessionList", { sessions: Type.Array(SessionView) });
const EndedView = named("EndedSessions", {
  ended: Type.Integer({ minimum: 0, description: "The number of sessions that were ended." }),
});

export function sessionRoutes(app: HttpApp, { authenticate, sessions }: Pick<Deps, "authenticate" | "sessions">): void {
  const users = { user: "any" } as const;

  app.get(
    "/v1/sessions",
    guarded(authenticate, users, {
      operationId: "listSessions",
      summary: "List sessions",
      tags: ["Sessions"],
      description: "Returns the sessions of the user, newest first.",
      response: { 200: SessionsView },
    }),
    async (request) => {
      const listed = await sessions.list(sessionUser(request).userId);
      return { sessions: listed.map((session) => toView(session, request.session?.sessionId)) };
    },
  );

  app.delete(
    "/v1/sessions/:session_id",
    guarded(authenticate, users, {
      operationId: "endSession",
      summary: "End a session",
      tags: ["Sessions"],
      description: "Logs the client of the session out.",
      params: Type.Object({ session_id: SessionId }),
      refusals: [sessionNotFound],
      response: { 204: Type.Null() },
    }),
    async (request, reply) => {
      const { session_id: sessionId } = request.params;
      await endSession(sessions, { userId: sessionUser(request).userId, sessionId });
      logSecurity(request, "session ended", { session_id: sessionId });
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/v1/sessions::revoke-others",
    guarded(authenticate, users, {
      operationId: "endOtherSessions",
      summary: "End other sessions",
      tags: ["Sessions"],
      description: "Ends every session of the user except the one of the request.",
      response: { 200: EndedView },
    }),
    async (request) => {
      const { session } = request;
      if (!session) throw new Error("the guard let a request pass without a session");
      const ended = await endOtherSessions(sessions, session);
      logSecurity(request, "session ended", { ended });
      return { ended };
    },
  );
}

function toView({ sessionId, userAgent, ...session }: ListedSession, current: string | undefined) {
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
