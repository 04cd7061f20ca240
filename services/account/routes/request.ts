/** Parts of requests that several routes read. */
import { type Principal, problems } from "@todoke/http";

/**
 * The path of an action on a user: /admin/users/{user_id}:suspend. The pattern ends the id before the colon; without it
 * the router would read the id and the action as one parameter.
 */
export const actionPath = (prefix: string, action: string): string => `${prefix}/:user_id([^/:]+)::${action}`;

/** The id of the calling user. Access rules already require a user; a route without such a rule is rejected here. */
export function requireActorId({ principal }: { readonly principal: Principal | undefined }): string {
  if (principal?.kind !== "user") throw problems.forbidden("only a user can do this");
  return principal.userId;
}

export function invalidField(field: string, detail: string) {
  return problems.invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
}

/** The cursor of the audit is an audit_id. */
export const auditCursor = { parts: ["bigint"] } as const;
