/** The user whose session a request came with, on a route that lets users in only. */
import { problems, type Role } from "@todoke/http";
import type { FastifyRequest } from "fastify";

export function userOf({ principal }: FastifyRequest): { readonly userId: string; readonly roles: readonly Role[] } {
  if (principal?.kind !== "user") throw problems.forbidden("this is for users who are logged in");
  const { userId, roles } = principal;
  return { userId, roles };
}
