/** Wires the service. Nothing else in this folder starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { readSettings } from "./config.ts";
import { createCommands } from "./deps.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { outboxTelemetry } from "./telemetry.ts";
import { startExpiry } from "./workers/expiry.ts";
import { startPartitionMaintenance } from "./workers/partition-maintenance.ts";

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
        await startPartitionMaintenance(db, {
          keepMonths: settings.auditKeepMonths,
          onError,
          onDropped: (partitions) => app.log.info({ partitions }, "old partitions of entitlement_audit were dropped"),
        }),
      );
      use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
      use(startExpiry(db, { onCommitted: wakeRelay, onError }));
      use(outboxTelemetry.watch(db, onError));
    }
    if (does("relay")) {
      const about = { name: "entitlement relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("api")) {
      const deps = { db, authenticate, ...createCommands(db, wakeRelay) };
      entitlementRoutes(app, deps);
      batchRoute(app, deps);
      userEntitlementRoutes(app, deps);
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});
