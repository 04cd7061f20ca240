/** Who may order, cancel and stop trading; and who may look, at what. */
import type { Principal, Scope } from "@todoke/http";

export const writers = { key: "orders:write", admin: true } as const;
export const readers = { key: "read", admin: true } as const;

/** Whose orders a reader gets to see: the caller's own; undefined: everybody's. */
export const visibleTo = (request: Called): string | undefined =>
  hasScope(request, "orders:read-all") ? undefined : request.caller;

/** Whether the caller may let trading go on that another has stopped. */
export const mayLiftAnyHalt = (request: Called): boolean => hasScope(request, "orders:resume");

interface Called {
  readonly caller: string;
  readonly principal: Principal | undefined;
}

/** Of the users only admins get in, and they may do everything here. */
const hasScope = ({ principal }: Called, scope: Scope): boolean =>
  principal?.kind === "user" || (principal?.kind === "key" && principal.scopes.includes(scope));
