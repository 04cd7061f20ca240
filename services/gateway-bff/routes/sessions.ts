/** A user's own sessions, and those of any user for staff. */
import { named, oneOf, ReasonBody } from "@todoke/contracts/api";
import {
  guarded,
  type HttpApp,
  hasStaffRole,
  IdempotencyHeaders,
  idempotencyKey,
  problems,
  type Role,
  staffActor,
} from "@todoke/http";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { endOtherSessions } from "../commands/end-other-sessions.ts";
import { endSession } from "../commands/end-session.ts";
import { endUserSessions } from "../commands/end-user-sessions.ts";
import type { Deps } from "../deps.ts";
import { logSecurity } from "../guard/security-log.ts";
import { sessionUser } from "../guard/session-user.ts";
import { reauthenticationRequired, sessionNotFound, upstreamProblems } from "../problems.ts";
import type { ListedSession } from "../sessions/index.ts";
import { rejectStaleLogin } from "./forward.ts";
import { Time, UserId } from "./schemas.ts";

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

const EndUserSessionsBody = named("EndUserSessionsRequest", {
  session_id: Type.Optional(Type.String({ ...SessionId, description: "Default: all sessions of the user." })),
  reason: ReasonBody.properties.reason,
});

/** Otherwise an operator could keep those logged out who may revoke the operator's role. */
async function rejectStaff({ upstreams }: Pick<Deps, "upstreams">, request: FastifyRequest, userId: string) {
  const { value } = await upstreams.account.call({
    method: "GET",
    path: `/users/${encodeURIComponent(userId)}`,
    user: sessionUser(request),
    requestId: request.id,
  });
  const { roles = [] } = value as { readonly roles?: readonly Role[] };
  if (hasStaffRole(roles, "VIEWER")) throw problems.forbidden("only an admin may do this to staff");
}

/** The sessions of any user, for staff. */
export function userSessionRoutes(
  app: HttpApp,
  deps: Pick<Deps, "authenticate" | "sessions" | "db" | "upstreams" | "reauthenticateMs">,
): void {
  const { authenticate, sessions, db, reauthenticateMs } = deps;
  const params = Type.Object({ user_id: UserId });
  const end = endUserSessions({ db, sessions });

  app.get(
    "/v1/admin/users/:user_id/sessions",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listUserSessions",
        summary: "List sessions of a user",
        tags: ["Sessions"],
        description: "Returns the sessions of a user, newest first.",
        params,
        response: { 200: SessionsView },
      },
    ),
    async (request) => {
      const listed = await sessions.list(request.params.user_id);
      return { sessions: listed.map((session) => toView(session, request.session?.sessionId)) };
    },
  );

  app.post(
    "/v1/admin/users/:user_id/sessions::end",
    guarded(
      authenticate,
      { staff: "OPERATOR" },
      {
        operationId: "endUserSessions",
        summary: "End sessions of a user",
        tags: ["Sessions"],
        description: "Logs the user out of one client, or of all, and records who did it and why.",
        params,
        headers: IdempotencyHeaders,
        body: EndUserSessionsBody,
        refusals: [reauthenticationRequired, sessionNotFound, ...Object.values(upstreamProblems.account)],
        passesOnRefusals: true,
        response: { 200: EndedView },
      },
    ),
    async (request) => {
      rejectStaleLogin(request.session, reauthenticateMs);
      const { session_id: sessionId, reason } = request.body;
      const { user_id: userId } = request.params;
      const key = idempotencyKey(request, request.caller);
      const actor = staffActor(request);
      if (actor.role !== "ADMIN") await rejectStaff(deps, request, userId);
      const ended = await end({ key, actor, userId, sessionId, reason });
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
