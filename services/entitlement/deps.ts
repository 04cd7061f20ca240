/** What the routes need from outside. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { ChangeEntitlements } from "./commands/change-entitlements.ts";
import type { CheckEntitlement } from "./commands/check-entitlement.ts";
import type { GrantEntitlement } from "./commands/grant-entitlement.ts";
import type { RevokeEntitlement } from "./commands/revoke-entitlement.ts";

export interface Deps {
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly grantEntitlement: GrantEntitlement;
  readonly revokeEntitlement: RevokeEntitlement;
  readonly changeEntitlements: ChangeEntitlements;
  readonly checkEntitlement: CheckEntitlement;
}
