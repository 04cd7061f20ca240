/** Puts the service together: the only file here that starts anything. */
import { EventNotEncodable, encodeEvent } from "@todoke/contracts";
import { apiKeyAuthentication, type Env, outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { retry } from "@todoke/kernel/worker";
import { changeEntitlement } from "./commands/change-entitlement.ts";
import { checkEntitlement } from "./commands/check-entitlement.ts";
import { keepExpiring } from "./expiry.ts";
import { keepAuditMonths } from "./partitions.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { tellPublished, told, watchOutbox } from "./telemetry.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "entitlement",
  port: 8082,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build({ settings, app, db, bus, wakeups, apiKeys, use, debug, onError, topicOf }) {
    const topic = topicOf("outbox_events");
    use(
      await keepAuditMonths(db, {
        keepMonths: settings.auditKeepMonths,
        onError,
        onDropped: (partitions) => app.log.info({ partitions }, "months of the audit were dropped by age"),
      }),
    );
    use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
    use(
      relay({ name: "entitlement relay", db, bus, encode, wakeups, topic, onError, onPublished: tellPublished }),
    ).start();
    const wakeRelay = () => wakeups.signal(topic);
    use(keepExpiring(db, { onCommitted: wakeRelay, onError }));
    const deps = {
      db,
      authenticate: apiKeyAuthentication(apiKeys),
      changeEntitlement: told(changeEntitlement(db, wakeRelay)),
      checkEntitlement: checkEntitlement(db),
    };
    entitlementRoutes(app, deps);
    batchRoute(app, deps);
    userEntitlementRoutes(app, deps);
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
    use(watchOutbox(db, onError));
  },
});

function readSettings(env: Env, faults: string[]): { auditKeepMonths: number } {
  const auditKeepMonths = Number(env.ENTITLEMENT_AUDIT_KEEP_MONTHS || 24);
  if (!Number.isInteger(auditKeepMonths) || auditKeepMonths < 1 || auditKeepMonths > 1_200)
    faults.push("ENTITLEMENT_AUDIT_KEEP_MONTHS should be a whole number of months from 1 to 1200");
  return { auditKeepMonths };
}

/** What this build does not know yet may be known to the one that is being deployed. */
function encode({ eventType, payload }: { eventType: string; payload: string }) {
  try {
    return encodeEvent(eventType, JSON.parse(payload));
  } catch (error) {
    if (error instanceof EventNotEncodable && error.perhapsNewer) return retry(0, error.message);
    throw error;
  }
}
