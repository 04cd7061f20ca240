/** Parts of requests that several routes read. */
import { type Principal, problems } from "@todoke/http";

/** The access rule of changes by the user and by admins. */
export const ownOrAdmin = { user: "own", staff: "ADMIN" } as const;
/** The access rule of reads. */
export const ownOrStaff = { user: "own", staff: "VIEWER" } as const;

/** The id of the calling user. Access rules already require a user; a route without such a rule is rejected here. */
export function requireActorId({ principal }: { readonly principal: Principal | undefined }): string {
  if (principal?.kind !== "user") throw problems.forbidden("only a user can do this");
  return principal.userId;
}

/** The cursor of the audit is an audit_id. */
export const auditCursor = { parts: ["bigint"] } as const;

export const formatEtag = ({ version }: { readonly version: number }): string => `"${version}"`;
