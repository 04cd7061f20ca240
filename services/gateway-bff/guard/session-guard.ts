/**
 * Authenticates callers by their session: a cookie (browsers) or a bearer token (native clients), never both.
 *
 * A text that cannot be a token is refused without a look-up. A user who is not ACTIVE is refused on every route without
 * `inactiveToo`; the status comes from the same read as the session, so a suspension takes effect at once.
 */
import { type Authenticate, problems } from "@todoke/http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { accountInactive, credentialsAmbiguous } from "../problems.ts";
import type { Session, SessionStore } from "../sessions/index.ts";
import { type Cookie, sessionCookie } from "./cookie.ts";
import { rejectForgery } from "./csrf.ts";

export interface SessionGuardOptions {
  readonly sessions: Pick<SessionStore, "find">;
  /** The origin that players see: "https://play.example". */
  readonly origin: string;
  /** The gateway is reached over http on loopback. */
  readonly isLoopback: boolean;
  /** Called with a session whose provider tokens expire soon. The request does not wait for it. */
  readonly onRefreshDue: (session: Session) => void;
}

export function sessionGuard({ sessions, origin, isLoopback, onRefreshDue }: SessionGuardOptions): Authenticate {
  const cookie = sessionCookie(isLoopback);
  return async (request) => {
    const session = await sessions.find(readToken(request, { cookie, origin }));
    if (!session) throw problems.unauthenticated("the session has ended; log in again");
    request.session = session;
    if (session.status !== "ACTIVE" && !request.routeOptions.config.inactiveToo) throw inactive(session);
    if (session.refreshDue) onRefreshDue(session);
    return { kind: "user", name: `user:${session.userId}`, userId: session.userId, roles: session.roles };
  };
}

const tokenPattern = /^tds_[\w-]{43}$/;
const bearerPattern = /^bearer (tds_[\w-]{43})$/i;

function readToken(request: FastifyRequest, { cookie, origin }: { cookie: Cookie; origin: string }): string {
  const { authorization } = request.headers;
  const [value, ...more] = cookie.valuesIn(request);
  if (authorization !== undefined) {
    if (value !== undefined) throw credentialsAmbiguous("send the cookie or the Authorization header, not both");
    const token = bearerPattern.exec(authorization)?.[1];
    if (!token) throw problems.unauthenticated("this is not a session token: Authorization: Bearer tds_…");
    return token;
  }
  if (value === undefined) throw problems.unauthenticated("log in first, at /login");
  if (more.length > 0 || !tokenPattern.test(value)) throw problems.unauthenticated("the session cookie is not valid");
  rejectForgery(request, origin);
  return value;
}

function inactive({ status, suspendedUntil }: Session) {
  if (status === "DELETED") return accountInactive("the account was deleted");
  return accountInactive(
    suspendedUntil ? `the account is suspended until ${suspendedUntil}` : "the account is suspended",
  );
}

/** Declares `request.session`. */
export function decorateSession(app: FastifyInstance): void {
  app.decorateRequest("session", undefined);
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Suspended users may call the route too, for instance to log out. */
    inactiveToo?: boolean;
  }
  interface FastifyRequest {
    /** The session of the request, once it is authenticated. */
    session: Session | undefined;
  }
}
