/** The user of a request on a route that only users may call. */
import { problems, type Role } from "@todoke/http";
import type { FastifyRequest } from "fastify";

export function sessionUser({ principal }: FastifyRequest): {
  readonly userId: string;
  readonly roles: readonly Role[];
} {
  if (principal?.kind !== "user") throw problems.forbidden("only users who are logged in may do this");
  const { userId, roles } = principal;
  return { userId, roles };
}
