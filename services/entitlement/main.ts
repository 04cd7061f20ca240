/** What the entitlement service is put together from. */
import { service } from "@todoke/service";
import { changeEntitlement } from "./commands/change-entitlement.ts";
import { checkEntitlement } from "./commands/check-entitlement.ts";
import { readSettings } from "./config.ts";
import { keepExpiring } from "./expiry.ts";
import { keepAuditMonths } from "./partitions.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { told } from "./telemetry.ts";

export const { configFaults, dead, events, migrate, start } = service({
  name: "entitlement",
  port: 8082,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  emits: ["entitlement.events"],
  async build({ settings, hasRole, app, db, wakeRelay, authenticate, use, onError }) {
    if (hasRole("maintenance")) {
      const onDropped = (partitions: readonly string[]) =>
        app.log.info({ partitions }, "old audit partitions were dropped");
      use(await keepAuditMonths(db, { keepMonths: settings.auditKeepMonths, onError, onDropped }));
      use(keepExpiring(db, { onCommitted: wakeRelay, onError }));
    }
    if (hasRole("api")) {
      const deps = {
        db,
        authenticate,
        changeEntitlement: told(changeEntitlement(db, wakeRelay)),
        checkEntitlement: checkEntitlement(db),
      };
      entitlementRoutes(app, deps);
      batchRoute(app, deps);
      userEntitlementRoutes(app, deps);
    }
  },
});
