/** One entitlement, read by its key. Checks that arrive while others run are read together by the next statement. */
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type EntitlementName, type EntitlementRow, selectEach } from "../store/entitlements.ts";

/** Null when it was never granted nor revoked. */
export type CheckEntitlement = (name: EntitlementName) => Promise<EntitlementRow | null>;

export const checkEntitlement = (db: Db): CheckEntitlement =>
  gather<EntitlementName, EntitlementRow | null>({ run: (names) => selectEach(db, names) });
