/**
 * Who calls the gateway: whose session it is, by cookie (browsers) or as a bearer token (native clients), never both.
 *
 * What cannot be a session's token is refused without asking the store. A user who is not ACTIVE is refused everywhere but
 * on routes that say `inactiveToo`; the store says so in the same read that finds the session, so that a suspension counts
 * from the moment it is known.
 */
import { type Authenticate, problems } from "@todoke/http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { accountInactive, credentialsAmbiguous } from "../problems.ts";
import type { Session, SessionStore } from "../sessions/index.ts";
import { type Cookie, sessionCookie } from "./cookie.ts";
import { refuseForgery } from "./csrf.ts";

export interface SessionGuardOptions {
  readonly sessions: Pick<SessionStore, "find">;
  /** What players see in their address bar: "https://play.example". */
  readonly origin: string;
  /** The gateway is reached over http on loopback. */
  readonly isLoopback: boolean;
  /** Hears of a session whose provider's tokens are about to end. Nobody waits for what it does. */
  readonly onRefreshDue: (session: Session) => void;
}

export function sessionGuard({ sessions, origin, isLoopback, onRefreshDue }: SessionGuardOptions): Authenticate {
  const cookie = sessionCookie(isLoopback);
  return async (request) => {
    const session = await sessions.find(tokenOf(request, { cookie, origin }));
    if (!session) throw problems.unauthenticated("the session has ended; log in again");
    request.session = session;
    if (session.status !== "ACTIVE" && !request.routeOptions.config.inactiveToo) throw inactive(session);
    if (session.refreshDue) onRefreshDue(session);
    return { kind: "user", name: `user:${session.userId}`, userId: session.userId, roles: session.roles };
  };
}

const token = /^tds_[\w-]{43}$/;
const bearer = /^bearer (tds_[\w-]{43})$/i;

function tokenOf(request: FastifyRequest, { cookie, origin }: { cookie: Cookie; origin: string }): string {
  const { authorization } = request.headers;
  const [value, ...more] = cookie.valuesIn(request);
  if (authorization !== undefined) {
    if (value !== undefined) throw credentialsAmbiguous("send the cookie or the Authorization header, not both");
    const presented = bearer.exec(authorization)?.[1];
    if (!presented) throw problems.unauthenticated("this is no session token: Authorization: Bearer tds_…");
    return presented;
  }
  if (value === undefined) throw problems.unauthenticated("log in first, at /login");
  if (more.length > 0 || !token.test(value)) throw problems.unauthenticated("the cookie is not one of ours");
  refuseForgery(request, origin);
  return value;
}

function inactive({ status, suspendedUntil }: Session) {
  if (status === "DELETED") return accountInactive("the account was deleted");
  return accountInactive(
    suspendedUntil ? `the account is suspended until ${suspendedUntil}` : "the account is suspended",
  );
}

/** Makes room for `request.session`. */
export function knowSessions(app: FastifyInstance): void {
  app.decorateRequest("session", undefined);
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Also for users who are suspended: what lets them see that they are, and leave. */
    inactiveToo?: boolean;
  }
  interface FastifyRequest {
    /** The session that the request came with, once it was found. */
    session: Session | undefined;
  }
}
