/** The dependencies of the routes. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { changeEntitlements } from "./commands/change-entitlements.ts";
import { checkEntitlement } from "./commands/check-entitlement.ts";
import { createChangeBatcher } from "./commands/create-change-batcher.ts";
import { grantEntitlement } from "./commands/grant-entitlement.ts";
import { grantEntitlementAsStaff } from "./commands/grant-entitlement-as-staff.ts";
import { revokeEntitlement } from "./commands/revoke-entitlement.ts";
import { revokeEntitlementAsStaff } from "./commands/revoke-entitlement-as-staff.ts";
import { countCommands } from "./telemetry.ts";

/** `onCommitted` is called after every batch that wrote events; it wakes the relay. */
export function createCommands(db: Db, onCommitted: () => void) {
  const submit = createChangeBatcher(db, onCommitted);
  const commands = {
    grantEntitlement: countCommands("grant", grantEntitlement(submit)),
    revokeEntitlement: countCommands("revoke", revokeEntitlement(submit)),
  };
  const staff = { db, onCommitted };
  return {
    ...commands,
    grantEntitlementAsStaff: countCommands("grant", grantEntitlementAsStaff(staff)),
    revokeEntitlementAsStaff: countCommands("revoke", revokeEntitlementAsStaff(staff)),
    changeEntitlements: changeEntitlements(commands),
    checkEntitlement: checkEntitlement(db),
  };
}

export interface Deps extends ReturnType<typeof createCommands> {
  readonly db: Db;
  readonly authenticate: Authenticate;
}
