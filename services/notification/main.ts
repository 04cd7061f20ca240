/** Declares the notification service and wires its parts. */
import { consumers } from "@todoke/contracts";
import { service } from "@todoke/service";
import { readSettings } from "./config.ts";
import { notify, readEvent } from "./events/on-event.ts";
import { deadNotificationRoutes } from "./routes/dead-notifications.ts";
import { debugInboxRoutes, staffInboxRoute } from "./routes/debug-inbox.ts";
import { userInboxRoutes } from "./routes/user-inbox.ts";
import { createSender } from "./senders/index.ts";
import { notificationAudit } from "./store/audit-rules.ts";
import { deadNotifications, redrivenNotifications } from "./store/dead-notifications.ts";
import { notifications, sentNotifications } from "./store/notifications.ts";
import { notificationLookups } from "./store/why.ts";
import { notificationGauges, observeStreams } from "./telemetry.ts";
import { openInboxStreams } from "./workers/inbox-streams.ts";
import { notificationSender, type SendBatch, sendBatch } from "./workers/notification-sender.ts";

/** Tests pass a sender of their own. */
export const notificationService = (openSender = createSender) =>
  service({
    name: "notification",
    port: 8083,
    migrations: new URL("./migrations/", import.meta.url),
    settings: readSettings,
    roles: ["sender"],
    workers: ["sender"],
    consumes: { subjects: consumers.notification },
    tables: [
      {
        table: notifications.table,
        lookup: ["user_id"],
        gauges: notificationGauges,
        deadLetters: deadNotifications,
        redrivenAs: "notification",
        deadLetterRoutes: deadNotificationRoutes,
      },
    ],
    retention: ({ sentKeepMs }) => [sentNotifications(sentKeepMs), redrivenNotifications(sentKeepMs)],
    audited: notificationAudit,
    explains: notificationLookups,
    async build({ settings, workers, hasRole, app, authenticate, debug, db, wakeups, use, onError, topicOf }) {
      const topic = topicOf(notifications.table.table);
      const streamsTopic = topicOf("inbox_streams");
      let sendNow: SendBatch | undefined;
      if (hasRole("sender")) {
        // Its lines have ids only. Searching them for secrets would cost more than the lines.
        const log = app.log.child({}, { redact: [] });
        const send = openSender(settings.sender, { ...workers.sender, log });
        use(notificationSender({ db, send, wakeups, topic, onError, settings: workers.sender })).start();
        if (send.isLocal) sendNow = sendBatch(send);
      }
      if (hasRole("api")) {
        const streams = use(
          openInboxStreams({ db, wakeups, topic: streamsTopic, streamsMax: settings.streamsMax, onError }),
        );
        use(observeStreams(streams));
        userInboxRoutes(app, { authenticate, db, streams });
        staffInboxRoute(app, { authenticate, db });
      }
      debug((on) => debugInboxRoutes(on, { db }));
      const effect = notify({
        wakeSender: () => wakeups.signal(topic),
        wakeStreams: () => wakeups.signal(streamsTopic),
        ...(sendNow && { sendNow }),
      });
      return { decode: readEvent, effect };
    },
  });

export const { audits, configErrors, dead, delays, events, migrate, start, why } = notificationService();
