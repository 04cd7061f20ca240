/** Wires the service. Nothing else in this folder starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, openOutbox, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { readSettings } from "./config.ts";
import { createCommands } from "./deps.ts";
import { accountRoutes } from "./routes/index.ts";
import { outboxTelemetry } from "./telemetry.ts";
import { startExpiry } from "./workers/expiry.ts";

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
    const outbox = openOutbox({ wakeups, topic });
    if (does("upkeep")) {
      use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
      use(startExpiry({ db, outbox, onError }));
      use(outboxTelemetry.watch(db, onError));
    }
    if (does("relay")) {
      const about = { name: "account relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("api")) {
      const commands = createCommands({ db, outbox, admins: settings.admins, onCommitted: wakeRelay });
      accountRoutes(app, { db, authenticate, ...commands });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});
