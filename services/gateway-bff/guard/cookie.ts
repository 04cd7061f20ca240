/**
 * The cookies of the gateway: read strictly, and set so that no script, no plain connection, no other host and no other
 * site's page can read, send or plant them.
 *
 * `__Host-` has the browser refuse the cookie unless it is Secure, for `/`, and of this host alone, so that a sibling
 * domain can plant none. On loopback over plain http a browser would refuse it for lack of Secure: there the name has no
 * prefix.
 */
import type { FastifyReply, FastifyRequest } from "fastify";

export interface CookieOptions {
  readonly name: string;
  readonly sameSite: "Strict" | "Lax";
  /** Without it the cookie goes with the browser; how long it opens anything is the server's to say. */
  readonly maxAgeSeconds?: number;
  /** The gateway is reached over http on loopback. */
  readonly isLoopback: boolean;
}

export interface Cookie {
  readonly name: string;
  /** All that the request has under this name: more than one is somebody's doing, and none of them is to be believed. */
  valuesIn(request: Pick<FastifyRequest, "headers">): readonly string[];
  set(reply: FastifyReply, value: string): void;
  clear(reply: FastifyReply): void;
}

/** Strict: it is sent for nothing that another site's page has begun. See landing.ts for the way back from a log-in. */
export const sessionCookie = (isLoopback: boolean): Cookie =>
  openCookie({ name: "todoke", sameSite: "Strict", isLoopback });

export function openCookie({ name: plainName, sameSite, maxAgeSeconds, isLoopback }: CookieOptions): Cookie {
  const name = isLoopback ? plainName : `__Host-${plainName}`;
  const start = `${name}=`;
  const attributes = `Path=/; HttpOnly; SameSite=${sameSite}${isLoopback ? "" : "; Secure"}`;
  const age = maxAgeSeconds === undefined ? "" : `; Max-Age=${maxAgeSeconds}`;
  const put = (reply: FastifyReply, text: string) => void reply.header("set-cookie", text);
  return {
    name,
    valuesIn({ headers: { cookie = "" } }) {
      if (!cookie.includes(start)) return [];
      return cookie
        .split(";")
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(start))
        .map((pair) => pair.slice(start.length));
    },
    set: (reply, value) => put(reply, `${start}${value}; ${attributes}${age}`),
    clear: (reply) => put(reply, `${start}; ${attributes}; Max-Age=0`),
  };
}
