/**
 * Binds a login to the browser that started it: the provider's response counts only with this cookie, so a link cannot log
 * a user in as another. The store has its hash.
 *
 * It is Lax, not Strict, because the response comes as a link from the provider's site. Without the pending login it is
 * worthless.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { openCookie } from "../guard/cookie.ts";
import { loginMs } from "./pending-login.ts";

export interface BindingCookie {
  /** Sets the cookie of this browser; returns the hash to store. */
  bind(request: FastifyRequest, reply: FastifyReply): string;
  isBound(request: FastifyRequest, storedHash: string): boolean;
}

const valuePattern = /^[\w-]{43}$/;
const hashValue = (text: string): string => hash("sha256", text, "base64url");

export function bindingCookie(isLoopback: boolean): BindingCookie {
  const cookie = openCookie({ name: "todoke-login", sameSite: "Lax", maxAgeSeconds: loginMs / 1_000, isLoopback });

  function readValue(request: FastifyRequest): string | undefined {
    const [value = "", ...more] = cookie.valuesIn(request);
    return more.length === 0 && valuePattern.test(value) ? value : undefined;
  }

  return {
    bind(request, reply) {
      // Reuse the value: logins may be pending in two tabs.
      const value = readValue(request) ?? randomBytes(32).toString("base64url");
      cookie.set(reply, value);
      return hashValue(value);
    },
    isBound(request, storedHash) {
      const value = readValue(request);
      return value !== undefined && timingSafeEqual(Buffer.from(hashValue(value)), Buffer.from(storedHash));
    },
  };
}
