/** Defects in how notifications are sent, given up and cleaned. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted, repeatedly, slow } from "./defect.ts";

const notifications = "services/notification/store/notifications.ts";
const webhook = "services/notification/senders/webhook.ts";

export const sendingDefects: readonly Planted[] = [
  {
    name: "dead-letter-apart",
    what: "A notification is made FAILED by one statement and put into the DLQ by another.",
    caughtBy: ["failed-is-put-away"],
    broughtOutBy: {
      given: [deadly("planted.gap", 1)],
      faults: repeatedly("webhook request lost", "webhook", { at: "POST /" }),
    },
    patches: [
      // The first try is the last one, so that something is given up in the run.
      {
        file: "services/notification/main.ts",
        find: "topic, onError, settings: workers.sender })",
        replace: "topic, onError, settings: { ...workers.sender, attemptsMax: 1 } })",
      },
      {
        file: notifications,
        find: "whenDead: `insert",
        replace: "...({} as { readonly whenDead?: string }),\n});\n\nexport const buryText = (`insert",
      },
      {
        file: notifications,
        find: "failed_at = now(), redriven_at = null`,\n});",
        replace:
          'failed_at = now(), redriven_at = null`).replace("from died", "from notifications where status = \'FAILED\' and notification_id = any($1::uuid[])");',
      },
      {
        file: "services/notification/telemetry.ts",
        find: "settlements.filter((_, index) => applied[index]).forEach(countSettlement);",
        replace: `settlements.filter((_, index) => applied[index]).forEach(countSettlement);
      const died = settlements.filter(({ outcome }, index) => applied[index] && outcome.kind === "dead");
      if (died.length === 0) return applied;
      await reach("planted.gap");
      const { buryText } = await import("./store/notifications.ts");
      await db.query(buryText, [died.map(({ claim }) => claim.key)]);`,
      },
    ],
  },
  {
    name: "id-of-each-try",
    what: "Every try has an id of its own: a receiver cannot tell a second copy.",
    caughtBy: ["sent-was-written", "same-under-one-id"],
    broughtOutBy: { faults: repeatedly("webhook answer lost", "webhook", { at: "POST /" }) },
    patches: [
      {
        file: webhook,
        find: "id: notification.notificationId, timestamp,",
        replace:
          "id: attempt === 1 ? notification.notificationId : `${notification.notificationId}-${attempt}`, timestamp,",
      },
    ],
  },
  {
    name: "retry-at-once",
    what: "What failed is taken again at once, whatever time it was given to wait.",
    caughtBy: ["retries-wait"],
    broughtOutBy: { faults: repeatedly("webhook request lost", "webhook", { at: "POST /" }) },
    patches: [
      {
        file: "packages/kernel/claims/statements.ts",
        find: "${isReady(t)} and t.${c.dueAt} <= ${now}`)}",
        replace: "${isReady(t)}`)}",
      },
    ],
  },
  {
    name: "unsent-cleaned",
    what: "The clean-up of notifications asks how old a row is, and not whether it was sent.",
    caughtBy: ["unfinished-is-kept", "notification-is-sent"],
    broughtOutBy: { given: [slow("sender.sending", 1_500)] },
    patches: [
      {
        file: "packages/kernel/retention/index.ts",
        find: "everyMs = 60_000",
        replace: "everyMs = 200",
      },
      {
        file: notifications,
        find: "sentNotifications = (keepMs: number)",
        replace: "sentNotifications = (_: number, keepMs = 500)",
      },
      { file: notifications, find: "finished: \"status = 'SENT'\",", replace: 'finished: "true",' },
      { file: notifications, find: 'since: "sent_at",', replace: 'since: "created_at",' },
    ],
  },
];
