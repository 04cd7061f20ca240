/** Defects of sending, dead-lettering and retention of notifications. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted, repeatedly, slow } from "./defect.ts";

const notifications = "services/notification/store/notifications.ts";
const webhook = "services/notification/senders/webhook.ts";

export const sendingDefects: readonly Planted[] = [
  {
    name: "dead-letter-apart",
    what: "One statement sets a notification to FAILED, and another inserts it into the DLQ.",
    caughtBy: ["failed-is-dead-lettered"],
    broughtOutBy: {
      given: [deadly("planted.gap", 1)],
      faults: repeatedly("webhook request lost", "webhook", { at: "POST /" }),
    },
    patches: [
      // One attempt only, so that notifications are dead-lettered in the run.
      {
        file: "services/notification/main.ts",
        find: "topic, onError, settings: workers.sender })",
        replace: "topic, onError, settings: { ...workers.sender, attemptsMax: 1 } })",
      },
      {
        file: notifications,
        find: "onDeadSql: `insert",
        replace: "...({} as { readonly onDeadSql?: string }),\n});\n\nexport const buryText = (`insert",
      },
      {
        file: notifications,
        find: "failed_at = now(), redriven_at = null`,\n});",
        replace:
          'failed_at = now(), redriven_at = null`).replace("from dead_rows", "from notifications where status = \'FAILED\' and notification_id = any($1::uuid[])");',
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
    what: "Every attempt has its own ID: a receiver cannot recognise a duplicate.",
    caughtBy: ["sent-was-written", "same-under-one-id"],
    broughtOutBy: { faults: repeatedly("webhook response lost", "webhook", { at: "POST /" }) },
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
    what: "A failed job is claimed again immediately, without its backoff.",
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
    what: "Retention of notifications checks the age of a row, and not whether it was sent.",
    caughtBy: ["unfinished-is-kept", "notification-is-sent"],
    broughtOutBy: { given: [slow("sender.sending", 1_500)] },
    patches: [
      {
        file: "packages/kernel/retention/index.ts",
        find: "intervalMs = 60_000",
        replace: "intervalMs = 200",
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
