/**
 * Ties a log-in to the browser in which it began, so that nobody can be logged in as somebody else by a link: the answer of
 * the provider counts only where this cookie is. The store keeps its hash.
 *
 * It is Lax, not Strict: the answer comes by a link from the provider's site. It opens nothing, and is worth nothing
 * without the log-in under way.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { openCookie } from "../guard/cookie.ts";

export const loginMs = 10 * 60_000;

export interface Binding {
  /** Makes this browser the one of a log-in that begins; gives the hash to keep. */
  bind(request: FastifyRequest, reply: FastifyReply): string;
  isBound(request: FastifyRequest, kept: string): boolean;
}

const form = /^[\w-]{43}$/;
const hashOf = (text: string): string => hash("sha256", text, "base64url");

export function bindingCookie(isLoopback: boolean): Binding {
  const cookie = openCookie({ name: "todoke-login", sameSite: "Lax", maxAgeSeconds: loginMs / 1_000, isLoopback });

  function valueIn(request: FastifyRequest): string | undefined {
    const [value = "", ...more] = cookie.valuesIn(request);
    return more.length === 0 && form.test(value) ? value : undefined;
  }

  return {
    bind(request, reply) {
      // Log-ins may be under way in two tabs: the second must not take the cookie from the first.
      const mine = valueIn(request) ?? randomBytes(32).toString("base64url");
      cookie.set(reply, mine);
      return hashOf(mine);
    },
    isBound(request, kept) {
      const mine = valueIn(request);
      return mine !== undefined && timingSafeEqual(Buffer.from(hashOf(mine)), Buffer.from(kept));
    },
  };
}
