/** Wires the service. Nothing else in this folder starts anything. */
import { consumers } from "@todoke/contracts";
import { type HttpApp, service, type WorkerChoices } from "@todoke/http";
import { deadInboxEvents, inboxDlqTable, keepSubscribed, openInbox, watchDeadEvents } from "@todoke/kernel/inbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { defaultSettings } from "@todoke/kernel/worker";
import { redrive } from "./commands/redrive.ts";
import { readSettings, type Settings } from "./config.ts";
import { notify, readEvent } from "./events/on-event.ts";
import { deadEventRoutes } from "./routes/dead-events.ts";
import { deadNotificationRoutes } from "./routes/dead-notifications.ts";
import { debugInboxRoutes } from "./routes/debug-inbox.ts";
import { userInboxRoutes } from "./routes/user-inbox.ts";
import type { Send } from "./senders/index.ts";
import { logSender } from "./senders/log.ts";
import { webhookSenders } from "./senders/webhook.ts";
import { deadNotifications, redrivenNotifications } from "./store/dead-notifications.ts";
import { sentNotifications } from "./store/notifications.ts";
import { observeBacklog, observeStreams } from "./telemetry.ts";
import { openInboxStreams } from "./workers/inbox-streams.ts";
import { notificationSender } from "./workers/notification-sender.ts";

const consumer = "notification";
const deadEvents = deadInboxEvents(consumer);

/** Tests pass a sender of their own. */
export const notificationService = (sender = createSender) =>
  service({
    name: "notification",
    port: 8083,
    migrations: new URL("./migrations/", import.meta.url),
    roles: ["api", "consumer", "sender", "upkeep"],
    settings: readSettings,
    dead: [deadNotifications, deadEvents],
    async build({ settings, workerSettings, does, app, authenticate, debug, db, bus, wakeups, use, onError, topicOf }) {
      const { keep, streamsMax } = settings;
      const [topic, redriveTopic] = [topicOf("notifications"), topicOf(inboxDlqTable)];
      const wakeSender = () => wakeups.signal(topic);
      const wakeRedriver = () => wakeups.signal(redriveTopic);
      if (does("upkeep")) {
        const policies = [
          sentNotifications(keep.sentMs),
          redrivenNotifications(keep.sentMs),
          retentionOf.processedEvents(keep.processedMs),
          retentionOf.inboxAttempts(),
          retentionOf.resolvedDeadLetters(),
        ];
        use(keepClean(db, policies, { onError }));
        use(observeBacklog(db, onError));
        use(watchDeadEvents({ db, consumer, onError }));
      }
      if (does("sender")) {
        const send = sender({ ...settings, ...workerSettings }, app);
        use(notificationSender({ db, send, wakeups, topic, onError, settings: workerSettings })).start();
      }
      if (does("api")) {
        const streams = use(openInboxStreams({ db, wakeups, topic, streamsMax, onError }));
        use(observeStreams(streams));
        userInboxRoutes(app, { authenticate, db, streams });
      }
      debug((on) => {
        debugInboxRoutes(on, { db });
        const redriveNotification = redrive({ db, dead: deadNotifications, wake: wakeSender });
        deadNotificationRoutes(on, { db, redriveNotification });
        const redriveEvent = redrive({ db, dead: deadEvents, wake: wakeRedriver });
        deadEventRoutes(on, { db, consumer, redriveEvent });
      });
      if (does("consumer")) {
        const { attemptsMax, backoff } = workerSettings;
        const inbox = openInbox({
          attemptsMax,
          backoff,
          db,
          consumer,
          read: readEvent,
          effect: notify(wakeSender),
          wakeups,
          topic: redriveTopic,
          onError,
        });
        use(inbox.redriver).start();
        use(keepSubscribed({ bus, consumer, subjects: consumers.notification, handle: inbox.handle, onError }));
      }
    },
  });

export const { configFaults, dead, migrate, start } = notificationService();

function createSender({ sender, ...workers }: Settings & WorkerChoices, { log }: HttpApp): Send {
  const { backoff, concurrency = defaultSettings.concurrency } = workers;
  return sender.kind === "webhook" ? webhookSenders({ ...sender, backoff, concurrency }) : logSender(log);
}
