/** Declares the entitlement service and wires its parts. */
import { service } from "@todoke/service";
import { readSettings } from "./config.ts";
import { createCommands } from "./deps.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { staffRoutes } from "./routes/staff.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { entitlementAudit } from "./store/audit-rules.ts";
import { entitlementLookups } from "./store/why.ts";
import { startExpiry } from "./workers/expiry.ts";
import { startPartitionMaintenance } from "./workers/partition-maintenance.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "entitlement",
  port: 8082,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  emits: ["entitlement.events"],
  audited: entitlementAudit,
  explains: entitlementLookups,
  async build({ settings, hasRole, app, db, wakeRelay, authenticate, use, onError }) {
    if (hasRole("maintenance")) {
      const onDropped = (partitions: readonly string[]) =>
        app.log.info({ partitions }, "old audit partitions were dropped");
      use(await startPartitionMaintenance(db, { keepMonths: settings.auditKeepMonths, onError, onDropped }));
      use(startExpiry(db, { onCommitted: wakeRelay, onError }));
    }
    if (hasRole("api")) {
      const deps = { db, authenticate, ...createCommands(db, wakeRelay) };
      entitlementRoutes(app, deps);
      batchRoute(app, deps);
      userEntitlementRoutes(app, deps);
      staffRoutes(app, deps);
    }
  },
});
