/**
 * Security log lines: logins, logouts and ended sessions. Refusals and admin requests have lines of their own, written by
 * packages/http. No line has a token, a code or a person's name.
 */
import { callerFields } from "@todoke/http";
import type { FastifyRequest } from "fastify";
import type { NewSession } from "../sessions/index.ts";

type Line = "logged in" | "login refused" | "logged out" | "logged out by the provider" | "session ended";

export function logSecurity(
  request: FastifyRequest,
  line: Line,
  fields: Readonly<Record<string, string | number>> = {},
): void {
  request.log.info({ ...callerFields(request), ...fields }, line);
}

/** Names the caller explicitly: a login request has none yet. */
export const logLogin = (request: FastifyRequest, { userId, client }: Pick<NewSession, "userId" | "client">): void =>
  logSecurity(request, "logged in", { caller: `user:${userId}`, client });
