/** Wires the service together. */
import { consumers, encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadInboxEvents, inboxDlqTable, keepSubscribed, openInbox, watchDeadEvents } from "@todoke/kernel/inbox";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { createCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { consumer, onPointReservationDue } from "./events/on-point-reservation-due.ts";
import { pointsRoutes } from "./routes/index.ts";
import { selectBacklog } from "./store/dispatch-reservations.ts";
import { observeReservations, outboxTelemetry, recordGrantDelays } from "./telemetry.ts";
import { startExpiry } from "./workers/expiry.ts";
import { createScheduler } from "./workers/scheduler.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "points",
  port: 8085,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "relay", "scheduler", "upkeep", "worker"],
  settings: readSettings,
  dead: [deadOutboxEvents, deadInboxEvents(consumer)],
  async build({ settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf }) {
    const topic = topicOf(outboxTable);
    const wakeRelay = () => wakeups.signal(topic);
    const schedulerTopic = topicOf("point_reservations");
    const wakeScheduler = () => wakeups.signal(schedulerTopic);
    if (does("upkeep")) {
      const policies = [
        retentionOf.publishedEvents(),
        retentionOf.idempotencyKeys(),
        retentionOf.processedEvents(settings.processedKeepMs),
        retentionOf.inboxAttempts(),
        retentionOf.resolvedDeadLetters(),
      ];
      use(keepClean(db, policies, { onError }));
      use(startExpiry(db, { onCommitted: wakeRelay, onError }));
      use(outboxTelemetry.watch(db, onError));
      use(observeReservations(() => selectBacklog(db), onError));
      use(watchDeadEvents({ db, consumer, onError }));
    }
    if (does("relay")) {
      const about = { name: "points relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("scheduler")) {
      const { schedulerMs: intervalMs, inFlightMax } = settings;
      const options = { db, wakeups, topic: schedulerTopic, intervalMs, inFlightMax };
      use(createScheduler({ ...options, onSent: wakeRelay, onError })).start();
    }
    if (does("worker")) {
      const { attemptsMax, backoff } = workerSettings;
      const inbox = openInbox({
        ...onPointReservationDue({ wake: wakeRelay, onGranted: recordGrantDelays }),
        attemptsMax,
        backoff,
        db,
        wakeups,
        topic: topicOf(inboxDlqTable),
        onError,
      });
      use(inbox.redriver).start();
      use(keepSubscribed({ bus, consumer, subjects: consumers[consumer], handle: inbox.handle, onError }));
    }
    if (does("api")) {
      const commands = createCommands({ db, wakeRelay, wakeScheduler, soonMs: settings.schedulerMs });
      pointsRoutes(app, { db, authenticate, ...commands });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});
