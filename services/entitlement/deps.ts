/** All that the service reaches outside itself. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { ChangeEntitlement } from "./commands/change-entitlement.ts";
import type { CheckEntitlement } from "./commands/check-entitlement.ts";

export interface Deps {
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly changeEntitlement: ChangeEntitlement;
  readonly checkEntitlement: CheckEntitlement;
}
