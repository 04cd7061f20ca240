/** What the routes of this service read from a request in the same way. */
import { type Principal, problems } from "@todoke/http";

/**
 * The path of one act on one user: /admin/users/{user_id}:suspend. The pattern ends the id where the act begins; the
 * router would take both for the name of one parameter otherwise.
 */
export const actPath = (prefix: string, act: string): string => `${prefix}/:user_id([^/:]+)::${act}`;

/** The user who calls. Rules let nobody but users in where this is asked; a route that forgets so refuses. */
export function actorOf({ principal }: { readonly principal: Principal | undefined }): string {
  if (principal?.kind !== "user") throw problems.forbidden("only a user can do this");
  return principal.userId;
}

export function invalid(field: string, detail: string) {
  return problems.invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
}

/** A cursor over the audit: the audit_id. */
export const auditCursor = { parts: ["bigint"] } as const;
