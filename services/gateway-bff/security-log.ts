/**
 * What the log says for security: who logged in and out, and from where. Refusals have a line of their own (problem+json),
 * and so has every request that only the role ADMIN lets through (callers.ts). Never a token, a code or a name of a person.
 */
import { whoAsks } from "@todoke/http";
import type { FastifyRequest } from "fastify";
import type { NewSession } from "./sessions/index.ts";

type Line = "logged in" | "log-in refused" | "logged out" | "logged out by the provider" | "session ended";

export function logSecurity(
  request: FastifyRequest,
  line: Line,
  more: Readonly<Record<string, string | number>> = {},
): void {
  request.log.info({ ...whoAsks(request), ...more }, line);
}

/** Nobody is the caller of a log-in yet: it ends in one. */
export const logLogin = (request: FastifyRequest, { userId, client }: NewSession): void =>
  logSecurity(request, "logged in", { caller: `user:${userId}`, client });
