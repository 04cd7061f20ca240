/** Puts the service together: the only file here that starts anything. */
import { EventNotEncodable, encodeEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, openOutbox, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { retry } from "@todoke/kernel/worker";
import { openCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { keepEndingSuspensions } from "./expiry.ts";
import { accountRoutes } from "./routes/index.ts";
import { tellPublished, watchOutbox } from "./telemetry.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "account",
  port: 8081,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "relay", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build({ settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf }) {
    const topic = topicOf("outbox_events");
    const wakeRelay = () => wakeups.signal(topic);
    if (does("upkeep")) {
      use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
      use(keepEndingSuspensions(db, { onCommitted: wakeRelay, onError }));
      use(watchOutbox(db, onError));
    }
    if (does("relay")) {
      const about = { name: "account relay", db, bus, encode, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: tellPublished })).start();
    }
    if (does("api")) {
      const outbox = openOutbox({ wakeups, topic });
      const commands = openCommands({ db, outbox, admins: settings.admins, onCommitted: wakeRelay });
      accountRoutes(app, { db, authenticate, ...commands });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});

/** What this build does not know yet may be known to the one that is being deployed. */
function encode({ eventType, payload }: { eventType: string; payload: string }) {
  try {
    return encodeEvent(eventType, JSON.parse(payload));
  } catch (error) {
    if (error instanceof EventNotEncodable && error.perhapsNewer) return retry(0, error.message);
    throw error;
  }
}
