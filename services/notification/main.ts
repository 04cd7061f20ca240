/** What the notification service is put together from. */
import { consumers } from "@todoke/contracts";
import type { HttpApp } from "@todoke/http";
import { defaultSettings } from "@todoke/kernel/worker";
import { service, type WorkerOverrides } from "@todoke/service";
import { readSettings, type Settings } from "./config.ts";
import { deliver } from "./deliver.ts";
import { openLiveInbox } from "./live/live-inbox.ts";
import { notify, readEvent } from "./on-event.ts";
import { deadNotificationRoutes } from "./routes/dead-notifications.ts";
import { inboxRoutes } from "./routes/inbox.ts";
import { userInboxRoutes } from "./routes/user-inbox.ts";
import type { Send } from "./senders/index.ts";
import { logSender } from "./senders/log.ts";
import { webhookSenders } from "./senders/webhook.ts";
import { deadNotifications, redrivenNotifications } from "./store/dead-notifications.ts";
import { notifications, sentNotifications } from "./store/notifications.ts";
import { notificationGauges, watchStreams } from "./telemetry.ts";

/** Tests pass a sender of their own; the settings choose it otherwise. */
export const notificationService = (openSender = senderFor) =>
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
        deadLetterRoutes: deadNotificationRoutes,
      },
    ],
    retention: ({ sentKeepMs }) => [sentNotifications(sentKeepMs), redrivenNotifications(sentKeepMs)],
    async build({ settings, workers, hasRole, app, authenticate, debug, db, wakeups, use, onError, topicOf }) {
      const topic = topicOf(notifications.table.table);
      if (hasRole("sender")) {
        const send = openSender({ ...settings, ...workers.sender }, app);
        use(deliver({ db, send, wakeups, topic, onError, settings: workers.sender })).start();
      }
      if (hasRole("api")) {
        const live = use(openLiveInbox({ db, wakeups, topic, streamsMax: settings.streamsMax, onError }));
        use(watchStreams(live));
        userInboxRoutes(app, { authenticate, db, live });
      }
      debug((on) => inboxRoutes(on, { db }));
      return { read: readEvent, effect: notify(() => wakeups.signal(topic)) };
    },
  });

export const { configFaults, dead, events, migrate, start } = notificationService();

function senderFor({ sender, ...worker }: Settings & WorkerOverrides, { log }: HttpApp): Send {
  const { backoff, concurrency = defaultSettings.concurrency } = worker;
  return sender.kind === "webhook" ? webhookSenders({ ...sender, backoff, concurrency }) : logSender(log);
}
