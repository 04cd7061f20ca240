/** The commands of the service, for one process. */
import type { Db } from "@todoke/kernel/db";
import { countCommands } from "../telemetry.ts";
import { createChangeBatcher } from "./change-batcher.ts";
import { changeEntitlements } from "./change-entitlements.ts";
import { checkEntitlement } from "./check-entitlement.ts";
import { grantEntitlement } from "./grant-entitlement.ts";
import { revokeEntitlement } from "./revoke-entitlement.ts";

/** `onCommitted` is called after every batch that wrote events; it wakes the relay. */
export function createCommands(db: Db, onCommitted: () => void) {
  const submit = createChangeBatcher(db, onCommitted);
  const commands = {
    grantEntitlement: countCommands("grant", grantEntitlement(submit)),
    revokeEntitlement: countCommands("revoke", revokeEntitlement(submit)),
  };
  return { ...commands, changeEntitlements: changeEntitlements(commands), checkEntitlement: checkEntitlement(db) };
}

export type Commands = ReturnType<typeof createCommands>;
