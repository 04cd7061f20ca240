/** Puts the service together: the only file here that starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { deadOutboxEvents, openOutbox, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { outboxRoutes, service } from "@todoke/service";
import { openCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { keepEndingSuspensions } from "./expiry.ts";
import { accountRoutes } from "./routes/index.ts";
import { outboxTelemetry } from "./telemetry.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "account",
  port: 8081,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "relay", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build({ settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf }) {
    const topic = topicOf(outboxTable);
    const wakeRelay = () => wakeups.signal(topic);
    if (does("upkeep")) {
      use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
      use(keepEndingSuspensions(db, { onCommitted: wakeRelay, onError }));
      use(outboxTelemetry.watch(db, onError));
    }
    if (does("relay")) {
      const about = { name: "account relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("api")) {
      const outbox = openOutbox({ wakeups, topic });
      const commands = openCommands({ db, outbox, admins: settings.admins, onCommitted: wakeRelay });
      accountRoutes(app, { db, authenticate, ...commands });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});
