/** Submits many grants and revokes at once. Each takes effect or fails on its own. */
import type { Answer } from "@todoke/kernel/idempotency";
import type { GrantEntitlement, GrantRequest } from "./grant-entitlement.ts";
import type { RevokeEntitlement } from "./revoke-entitlement.ts";

export interface EntitlementChange extends GrantRequest {
  readonly action: "grant" | "revoke";
}

export type ChangeEntitlements = (changes: readonly EntitlementChange[]) => Promise<Answer>[];

interface Commands {
  readonly grantEntitlement: GrantEntitlement;
  readonly revokeEntitlement: RevokeEntitlement;
}

/** All are submitted in one turn of the event loop, so changes of one entitlement, or with one key, keep their order. */
export function changeEntitlements({ grantEntitlement, revokeEntitlement }: Commands): ChangeEntitlements {
  const commands = { grant: grantEntitlement, revoke: revokeEntitlement };
  return (changes) => changes.map(({ action, ...request }) => commands[action](request));
}
