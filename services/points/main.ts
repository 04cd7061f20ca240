/** Puts the service together: the only file here that starts anything. */
import { consumers, encodeOutboxEvent } from "@todoke/contracts";
import { deadInboxEvents, inboxDlqTable, keepSubscribed, openInbox, watchDeadEvents } from "@todoke/kernel/inbox";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { outboxRoutes, service } from "@todoke/service";
import { changePoints } from "./commands/change-points.ts";
import { changeSchedule } from "./commands/change-schedule.ts";
import { changeScheduleUsers } from "./commands/change-schedule-users.ts";
import { createSchedule } from "./commands/create-schedule.ts";
import { readSettings } from "./config.ts";
import { keepExpiring } from "./expiry.ts";
import { cancel, consumer, onReservationDue, reserve, scheduler } from "./reservations/index.ts";
import { pointsRoutes } from "./routes/index.ts";
import { outboxTelemetry, tellGranted, toldCancel, toldChange, toldReserve, watchReservations } from "./telemetry.ts";

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
    const soonTopic = topicOf("point_reservations");
    const wakeScheduler = () => wakeups.signal(soonTopic);
    if (does("upkeep")) {
      const policies = [
        retentionOf.publishedEvents(),
        retentionOf.idempotencyKeys(),
        retentionOf.processedEvents(settings.processedKeepMs),
        retentionOf.inboxAttempts(),
        retentionOf.resolvedDeadLetters(),
      ];
      use(keepClean(db, policies, { onError }));
      use(keepExpiring(db, { onCommitted: wakeRelay, onError }));
      use(outboxTelemetry.watch(db, onError));
      use(watchReservations(db, onError));
      use(watchDeadEvents({ db, consumer, onError }));
    }
    if (does("relay")) {
      const about = { name: "points relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: outboxTelemetry.tellPublished })).start();
    }
    if (does("scheduler")) {
      const { schedulerMs: everyMs, inFlightMax } = settings;
      const about = { db, wakeups, topic: soonTopic, everyMs, inFlightMax };
      use(scheduler({ ...about, onSent: wakeRelay, onError })).start();
    }
    if (does("worker")) {
      const { attemptsMax, backoff } = workerSettings;
      const inbox = openInbox({
        ...onReservationDue({ wake: wakeRelay, onGranted: tellGranted }),
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
      pointsRoutes(app, {
        db,
        authenticate,
        changePoints: toldChange(changePoints(db, wakeRelay)),
        reserve: toldReserve(reserve({ db, onSoon: wakeScheduler, soonMs: settings.schedulerMs })),
        cancel: toldCancel(cancel(db)),
        createSchedule: createSchedule(db, wakeScheduler),
        changeSchedule: changeSchedule(db, wakeScheduler),
        changeScheduleUsers: changeScheduleUsers(db),
      });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});
