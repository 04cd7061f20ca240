/** Reads one entitlement. Checks that arrive while a statement runs share the next one. */
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Entitlement, type EntitlementName, selectEach } from "../store/entitlements.ts";

/** Null if the product was never granted to the user, nor revoked. */
export type CheckEntitlement = (name: EntitlementName) => Promise<Entitlement | null>;

export const checkEntitlement = (db: Db): CheckEntitlement =>
  gather<EntitlementName, Entitlement | null>({ run: (names) => selectEach(db, names) });
