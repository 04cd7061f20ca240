/** Defects of relay, inbox and retention. */
import type { Patch } from "../patch.ts";
import { deadly, type Planted, repeatedly, slow } from "./defect.ts";

const relay = "packages/kernel/outbox/relay.ts";
const inbox = "packages/kernel/inbox";
const retention = "packages/kernel/retention/index.ts";

/** Every notification gets an id of its own: the id of its event and user would hide a broken inbox. */
const withoutSecondKey: readonly Patch[] = [
  {
    file: "services/notification/events/on-event.ts",
    find: "notification_id: notificationId(notification),",
    replace: "notification_id: crypto.randomUUID(),",
  },
];

const oftenCleaned: Patch = {
  file: retention,
  find: "intervalMs = 60_000",
  replace: "intervalMs = 200",
};

export const eventDefects: readonly Planted[] = [
  {
    name: "settle-before-publish",
    what: "The relay settles claimed events and publishes them in the background.",
    caughtBy: ["event-reaches-the-bus"],
    broughtOutBy: {
      given: [slow("relay.publishing", 500)],
      faults: [{ atMs: 3_000, fault: "kill", target: "entitlement_1" }],
    },
    patches: [
      {
        file: relay,
        find: "return jobs.map((_, index) => outcomes.then((all) => all[index] as Outcome));",
        replace: 'void outcomes.catch(() => {}); return jobs.map(async () => ({ kind: "done" as const }));',
      },
    ],
  },
  {
    name: "publish-not-checked",
    what: "The relay checks whether publish threw, and not the outcome of each event.",
    caughtBy: ["event-reaches-the-bus"],
    broughtOutBy: { faults: repeatedly("publish request lost", "entitlement_1", { at: "bus publish" }) },
    patches: [
      {
        file: relay,
        find: "      unavailable = 0;\n      return outcomes;",
        replace: '      unavailable = 0;\n      return outcomes.map(() => ({ kind: "done" as const }));',
      },
    ],
  },
  {
    name: "ack-before-commit",
    what: "The consumer acks a batch when it arrives, and handles it afterwards.",
    caughtBy: ["event-takes-effect"],
    broughtOutBy: {
      given: [slow("consumer.effect", 500)],
      faults: [{ atMs: 3_000, fault: "kill", target: "notification_1" }],
    },
    patches: [
      {
        file: `${inbox}/inbox.ts`,
        find: "if (await tryBatch(inbox, batch)) for (",
        replace: "void tryBatch(inbox, batch);\n    for (",
      },
    ],
  },
  {
    name: "inbox-outside-transaction",
    what: "The mark of the inbox is committed separately, before the effect.",
    caughtBy: ["event-takes-effect"],
    broughtOutBy: { given: [deadly("consumer.marked")] },
    patches: [
      {
        file: `${inbox}/apply.ts`,
        find: "await store.insertProcessed(tx,",
        replace: "await store.insertProcessed(inbox.db as never,",
      },
    ],
  },
  {
    name: "no-inbox",
    what: "The consumer trusts the bus to deliver once: it writes the mark without checking whether it existed.",
    caughtBy: ["effect-once-per-event"],
    broughtOutBy: {
      faults: [{ atMs: 2_000, fault: "delivered twice", target: "notification_1", detail: { batches: 10 } }],
    },
    patches: [
      {
        file: `${inbox}/apply.ts`,
        find: "if (newIds.delete(delivery.eventId)) events.push(event);",
        replace: "events.push(event);",
      },
      {
        file: `${inbox}/handle-one.ts`,
        find: "if (attempt === undefined) {",
        replace: "if (false as boolean) {",
      },
      ...withoutSecondKey,
    ],
  },
  {
    name: "inbox-forgets",
    what: "Marks of the inbox are deleted before the last possible redelivery of their events.",
    caughtBy: ["effect-once-per-event"],
    broughtOutBy: { given: [deadly("consumer.handled")] },
    patches: [
      oftenCleaned,
      {
        file: retention,
        find: "processedEvents: (keepMs = 14 * dayMs)",
        replace: "processedEvents: (_: number, keepMs = 100)",
      },
      ...withoutSecondKey,
    ],
  },
  {
    name: "error-swallowed",
    what: "Events that the consumer cannot handle are logged and acked.",
    caughtBy: ["event-takes-effect"],
    broughtOutBy: {
      bus: "nats",
      given: [slow("consumer.effect", 300)],
      faults: [{ atMs: 3_000, fault: "postgres stop", target: "postgres", forMs: 2_000 }],
    },
    patches: [
      {
        file: `${inbox}/handle-one.ts`,
        find: "return release(describeError(error), backoffMs(1, backoff));",
        replace: "return done;",
      },
    ],
  },
  {
    name: "cleaned-by-age-alone",
    what: "Retention of the outbox checks the age of a row, and not whether it is finished.",
    caughtBy: ["unfinished-is-kept", "event-reaches-the-bus"],
    broughtOutBy: { given: [slow("relay.publishing", 1_500)] },
    patches: [
      oftenCleaned,
      {
        file: retention,
        find: "publishedEvents: (keepMs = 7 * dayMs)",
        replace: "publishedEvents: (_: number, keepMs = 500)",
      },
      { file: retention, find: "finished: \"status = 'PUBLISHED'\",", replace: 'finished: "true",' },
      { file: retention, find: 'since: "published_at",', replace: 'since: "created_at",' },
    ],
  },
];
