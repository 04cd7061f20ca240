/** The notification service in a run: every event becomes one notification, and the receiver gets it. */
import { groupBy } from "../checks/group.ts";
import type { Evidence, Row } from "../evidence.ts";
import { type Violation, violation } from "../invariants.ts";
import type { ServiceUnderTest } from "./index.ts";

/** 32 bytes, as Standard Webhooks requires; for tests only. */
export const webhookSecret = `whsec_${Buffer.from("chaos".padEnd(32, "-")).toString("base64")}`;

const batchMax = 50;

export const notification: ServiceUnderTest = {
  name: "notification",
  copies: 2,
  load: () => import("@todoke/notification"),
  env: ({ webhookUrl }) => ({
    NOTIFICATION_PORT: "0",
    NOTIFICATION_SENDER: "webhook",
    NOTIFICATION_WEBHOOK_URL: webhookUrl,
    NOTIFICATION_WEBHOOK_SECRET: webhookSecret,
    NOTIFICATION_WEBHOOK_ALLOW_PRIVATE: "true",
    NOTIFICATION_BATCH_MAX: String(batchMax),
  }),
  commits: ["commit", "settle notifications", "claim notifications"],
  publishes: false,
  consumes: true,
  failpoints: ["consumer.", "sender.", "transaction.", "delivery.", "stop."],
  lock: `select from notification.notifications where status <> 'SENT' limit 100 for update skip locked`,
  tables: [
    {
      table: "notifications",
      key: "notification_id",
      states: { ready: "PENDING", claimed: "PROCESSING", done: "SENT", dead: "FAILED" },
      batchMax,
    },
  ],
  unfinished: `select count(*)::int as unfinished from notification.notifications where status not in ('SENT', 'FAILED')`,
  evidence: {
    notifications: `select notification_id::text, event_id::text, user_id, event_type, status, attempt_count,
                           lease_epoch::int, last_error, (extract(epoch from created_at) * 1000)::float8 as created_at
                      from notification.notifications`,
    processed: `select event_id::text, consumer, result from notification.processed_events`,
    dead: `select notification_id::text from notification.notification_dlq where redriven_at is null`,
    deadEvents: `select event_id::text, last_error from notification.inbox_dlq where status <> 'RESOLVED'`,
  },
  check: (evidence) => [
    ...checkEffects(evidence),
    ...checkSent(evidence),
    ...checkDead(evidence),
    ...(evidence.facts.bus === "postgres" ? checkOrder(evidence) : []),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`notification/${name}`] ?? [];
/** Events of the subjects that notification consumes. */
const listEvents = ({ tables }: Evidence): readonly Row[] =>
  Object.entries(tables).flatMap(([name, events]) =>
    name.endsWith("/events") ? events.filter(({ event_type }) => event_type !== "PointReservationDue") : [],
  );

/** How many notifications an event has: one for each player of a match, and none that concerns staff only. */
function countDrafts({ event_type, payload }: Row): number {
  if (event_type === "AccountRolesChanged" || event_type === "AccountDeleted") return 0;
  return event_type === "MatchMade" ? JSON.parse(String(payload)).players.length : 1;
}

/** Every event has one mark and one notification, and nothing else has any. */
function checkEffects(evidence: Evidence): Violation[] {
  const byEvent = groupBy(rows(evidence, "notifications"), ({ event_id }) => String(event_id));
  const marks = groupBy(rows(evidence, "processed"), ({ event_id }) => String(event_id));
  const events = new Map(listEvents(evidence).map((event) => [String(event.event_id), event]));
  const missing = [...events].flatMap(([id, event]) => {
    const [n, m, drafts] = [byEvent.get(id)?.length ?? 0, marks.get(id)?.length ?? 0, countDrafts(event)];
    if (n > drafts) return [violation("effect-once-per-event", `event ${id} has ${n} notifications`)];
    if (n === drafts && m === 1) return [];
    return [violation("event-takes-effect", `event ${id} has ${n} notifications and ${m} marks`)];
  });
  const unknownIds = [...new Set([...byEvent.keys(), ...marks.keys()])].filter((id) => !events.has(id));
  return [
    ...missing,
    ...unknownIds.map((id) => violation("effect-has-a-command", `event ${id} took effect and is in no outbox`)),
    ...rows(evidence, "deadEvents").map(({ event_id, last_error }) =>
      violation("event-takes-effect", `event ${event_id} was dead-lettered: ${last_error}`),
    ),
  ];
}

/** The receiver has every SENT notification, at most once per claim, always with the same body. */
function checkSent(evidence: Evidence): Violation[] {
  const arrivals = groupBy(evidence.arrivals, ({ webhookId }) => webhookId);
  const written = new Map(rows(evidence, "notifications").map((row) => [String(row.notification_id), row]));
  const sent = [...written].flatMap(([id, { status, lease_epoch, last_error }]) => {
    const received = arrivals.get(id) ?? [];
    const found: Violation[] = [];
    if (status !== "SENT") found.push(violation("notification-is-sent", `${id} is ${status}: ${last_error}`));
    else if (received.length === 0)
      found.push(violation("notification-is-sent", `${id} is SENT, but was not received`));
    if (received.length > Number(lease_epoch))
      found.push(
        violation(
          "sent-once-per-claim",
          `${id} was received ${received.length} times and was claimed ${lease_epoch} times`,
        ),
      );
    if (received.some(({ body }) => body !== received[0]?.body))
      found.push(violation("same-under-one-id", `${id} was received with different bodies`));
    return found;
  });
  const unknownIds = [...arrivals.keys()].filter((id) => !written.has(id));
  return [
    ...sent,
    ...unknownIds.map((id) => violation("sent-was-written", `${id} was received and is not a notification of ours`)),
  ];
}

function checkDead(evidence: Evidence): Violation[] {
  const failed = new Set(
    rows(evidence, "notifications").flatMap((row) => (row.status === "FAILED" ? [String(row.notification_id)] : [])),
  );
  const deadLettered = new Set(rows(evidence, "dead").map((row) => String(row.notification_id)));
  return [...failed.symmetricDifference(deadLettered)].map((id) =>
    violation(
      "failed-is-dead-lettered",
      `${id} is ${failed.has(id) ? "FAILED and not in the DLQ" : "in the DLQ and not FAILED"}`,
    ),
  );
}

/** The PostgreSQL bus delivers an aggregate's events one after the other, also after retries. */
function checkOrder(evidence: Evidence): Violation[] {
  const createdAt = new Map(rows(evidence, "notifications").map((row) => [row.event_id, Number(row.created_at)]));
  return [...groupBy(listEvents(evidence), ({ aggregate }) => String(aggregate))].flatMap(([aggregate, events]) => {
    const its = events
      .toSorted((a, b) => Number(a.version) - Number(b.version))
      .filter(({ event_id }) => createdAt.has(event_id));
    const wrong = its.findIndex((event, n) => {
      const before = its[n - 1];
      return before !== undefined && Number(createdAt.get(event.event_id)) < Number(createdAt.get(before.event_id));
    });
    if (wrong < 0) return [];
    return [
      violation(
        "handled-in-order",
        `${aggregate}: version ${its[wrong]?.version} took effect before the one before it`,
      ),
    ];
  });
}
