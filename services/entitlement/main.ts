/** Puts the service together: the only file here that starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { type Env, outboxRoutes, service, wholeNumbers } from "@todoke/service";
import { changeEntitlement } from "./commands/change-entitlement.ts";
import { checkEntitlement } from "./commands/check-entitlement.ts";
import { keepExpiring } from "./expiry.ts";
import { keepAuditMonths } from "./partitions.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { outboxTelemetry, told } from "./telemetry.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "entitlement",
  port: 8082,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "relay", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build({ settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf }) {
    const topic = topicOf(outboxTable);
    const wakeRelay = () => wakeups.signal(topic);
    if (does("upkeep")) {
      use(
        await keepAuditMonths(db, {
          keepMonths: settings.auditKeepMonths,
          onError,
          onDropped: (partitions) => app.log.info({ partitions }, "months of the audit were dropped by age"),
        }),
      );
      use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
      use(keepExpiring(db, { onCommitted: wakeRelay, onError }));
      use(outboxTelemetry.watch(db, onError));
    }
    if (does("relay")) {
      const about = { name: "entitlement relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("api")) {
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
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});

function readSettings(env: Env, faults: string[]): { auditKeepMonths: number } {
  return { auditKeepMonths: wholeNumbers(env, faults)("ENTITLEMENT_AUDIT_KEEP_MONTHS", 24, [1, 1_200]) };
}
