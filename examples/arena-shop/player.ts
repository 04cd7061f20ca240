/**
 * Who calls: a game by its session token, a browser by the gateway's cookie, which reaches the shop because both have one origin.
 * The gateway knows the session, so the shop stores none.
 */
import type { IncomingMessage } from "node:http";
import { createClient, type PlayerClient } from "@todoke/client";

export interface Player {
  readonly userId: string;
  /** Calls the gateway as the player. */
  readonly todoke: PlayerClient;
}

export interface SessionOptions {
  readonly gateway: string;
  /** The name of the gateway's cookie. */
  readonly cookieName: string;
}

/** Throws a Problem of the gateway if the session is not valid. */
export async function authenticate(request: IncomingMessage, { gateway, cookieName }: SessionOptions): Promise<Player> {
  const todoke = createClient({ gateway, session: readSession(request, cookieName) });
  const { user_id: userId } = await todoke.gateway.getMe();
  return { userId, todoke };
}

/** An empty text is no session, and the gateway says so. */
function readSession({ headers }: IncomingMessage, cookieName: string): string {
  const [, token] = /^Bearer (tds_[\w-]{1,100})$/.exec(headers.authorization ?? "") ?? [];
  if (token) return token;
  // A page of another site makes a browser send the cookie, but it cannot send this header, and the browser names the site.
  if (headers["x-todoke-request"] === undefined || headers["sec-fetch-site"] !== "same-origin") return "";
  const values = (headers.cookie ?? "").split("; ").filter((cookie) => cookie.startsWith(`${cookieName}=tds_`));
  return values.length === 1 ? (values[0]?.slice(cookieName.length + 1) ?? "") : "";
}
