/** Submits many grants and revokes at once. Each takes effect or fails on its own. */
import type { GrantRequest, grantEntitlement } from "./grant-entitlement.ts";
import type { revokeEntitlement } from "./revoke-entitlement.ts";

export interface EntitlementChange extends GrantRequest {
  readonly action: "grant" | "revoke";
}

interface Commands {
  readonly grantEntitlement: ReturnType<typeof grantEntitlement>;
  readonly revokeEntitlement: ReturnType<typeof revokeEntitlement>;
}

/** All are submitted in one turn of the event loop, so changes of one entitlement, or with one key, keep their order. */
export function changeEntitlements({ grantEntitlement, revokeEntitlement }: Commands) {
  const commands = { grant: grantEntitlement, revoke: revokeEntitlement };
  return (changes: readonly EntitlementChange[]) => changes.map(({ action, ...request }) => commands[action](request));
}
