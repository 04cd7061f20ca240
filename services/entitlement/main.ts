/** Puts the service together: the only file here that starts anything. */
import { EventNotEncodable, encodeEvent } from "@todoke/contracts";
import { apiKeyAuthentication, service } from "@todoke/http";
import { relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { retry } from "@todoke/kernel/worker";
import { changeEntitlement } from "./commands/change-entitlement.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";

export const { configFaults, migrate, start } = service({
  name: "entitlement",
  port: 8082,
  migrations: new URL("./migrations/", import.meta.url),
  settings: () => ({}),
  async build({ app, db, bus, wakeups, apiKeys, use, onError, topicOf }) {
    const topic = topicOf("outbox_events");
    use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
    use(relay({ name: "entitlement relay", db, bus, encode, wakeups, topic, onError })).start();
    entitlementRoutes(app, {
      db,
      authenticate: apiKeyAuthentication(apiKeys),
      changeEntitlement: changeEntitlement(db, () => wakeups.signal(topic)),
    });
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
