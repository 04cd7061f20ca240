/** Access rules: who may change orders and the trading state, and who may read which orders. */
import type { Principal, Scope } from "@todoke/http";

export const writers = { key: "orders:write", staff: "ADMIN" } as const;
export const readers = { key: "read", staff: "VIEWER" } as const;
/** Who may stop and resume trading. */
export const switchers = { key: "orders:write", staff: "OPERATOR" } as const;
export const operators = { staff: "OPERATOR" } as const;

/** Positions are those of all callers together. */
export const readersOfAll = { key: "orders:read-all", staff: "VIEWER" } as const;
export const cancellersOfAll = { key: "orders:cancel-all", staff: "ADMIN" } as const;

/** The caller whose orders a request may see; undefined: those of all callers. */
export const visibleTo = (request: CallerRequest): string | undefined =>
  hasScope(request, "orders:read-all") ? undefined : request.caller;

/** Whether the caller may resume trading that another caller has stopped. */
export const mayLiftAnyHalt = (request: CallerRequest): boolean => hasScope(request, "orders:resume");

interface CallerRequest {
  readonly caller: string;
  readonly principal: Principal | undefined;
}

/** The only users that pass the access rules are staff with the role that they require. Their orders are those of all callers. */
const hasScope = ({ principal }: CallerRequest, scope: Scope): boolean =>
  principal?.kind === "user" || (principal?.kind === "key" && principal.scopes.includes(scope));
