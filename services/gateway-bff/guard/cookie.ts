/**
 * The cookies of the gateway: parsed strictly, and set so that no script, plain connection, other host or other site can
 * read, send or plant them.
 *
 * With the prefix `__Host-` a browser accepts a cookie only if it is Secure, for `/` and for this host alone, so a sibling
 * domain can plant none. On loopback over plain http a browser would refuse it, so there the name has no prefix.
 */
import type { FastifyReply, FastifyRequest } from "fastify";

export interface CookieOptions {
  readonly name: string;
  readonly sameSite: "Strict" | "Lax";
  /** Without it the cookie ends with the browser; the server decides when a session ends. */
  readonly maxAgeSeconds?: number;
  /** The gateway is reached over http on loopback. */
  readonly isLoopback: boolean;
}

export interface Cookie {
  readonly name: string;
  /** All values under this name. More than one means that another party planted one: trust none. */
  valuesIn(request: Pick<FastifyRequest, "headers">): readonly string[];
  set(reply: FastifyReply, value: string): void;
  clear(reply: FastifyReply): void;
}

/** Strict: not sent with a navigation that another site started. landing.ts handles the way back from a login. */
export const sessionCookie = (isLoopback: boolean): Cookie =>
  openCookie({ name: "todoke", sameSite: "Strict", isLoopback });

export function openCookie({ name: plainName, sameSite, maxAgeSeconds, isLoopback }: CookieOptions): Cookie {
  const name = isLoopback ? plainName : `__Host-${plainName}`;
  const prefix = `${name}=`;
  const attributes = `Path=/; HttpOnly; SameSite=${sameSite}${isLoopback ? "" : "; Secure"}`;
  const age = maxAgeSeconds === undefined ? "" : `; Max-Age=${maxAgeSeconds}`;
  const send = (reply: FastifyReply, text: string) => void reply.header("set-cookie", text);
  return {
    name,
    valuesIn({ headers: { cookie = "" } }) {
      if (!cookie.includes(prefix)) return [];
      return cookie
        .split(";")
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(prefix))
        .map((pair) => pair.slice(prefix.length));
    },
    set: (reply, value) => send(reply, `${prefix}${value}; ${attributes}${age}`),
    clear: (reply) => send(reply, `${prefix}; ${attributes}; Max-Age=0`),
  };
}
