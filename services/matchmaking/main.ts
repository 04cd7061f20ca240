/** Puts the service together: the only file here that starts anything. */
import { consumers, encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadInboxEvents, inboxDlqTable, keepSubscribed, openInbox, watchDeadEvents } from "@todoke/kernel/inbox";
import { deadOutboxEvents, openOutbox, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { readSettings } from "./config.ts";
import { createCommands, openQueue } from "./deps.ts";
import { onAccountEvent, readEvent } from "./events/on-account-event.ts";
import { debugRoutes } from "./routes/debug.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { endsRetention } from "./store/retention.ts";
import { countCommandErrors, countDependencyError, queueGauges, tellPublished, watchOutbox } from "./telemetry.ts";
import { openTicketIds } from "./tickets/ticket-id.ts";
import { openKnownModes } from "./workers/known-modes.ts";
import { openLiveRules } from "./workers/live-rules.ts";
import { type Matcher, startMatcher } from "./workers/matcher.ts";

const name = "matchmaking";
const consumer = name;

export const { configFaults, dead, migrate, start } = service({
  name,
  port: 8084,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "consumer", "matcher", "recorder", "relay", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents, deadInboxEvents(consumer)],
  async build(parts) {
    const { settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf } = parts;
    const topic = topicOf(outboxTable);
    const joinedTopic = (mode: string) => `${topicOf("tickets")}.${mode}`;
    const onJoined = (mode: string) => wakeups.signal(joinedTopic(mode));
    if (does("upkeep")) {
      const policies = [
        retentionOf.publishedEvents(),
        retentionOf.idempotencyKeys(),
        retentionOf.processedEvents(settings.processedKeepMs),
        retentionOf.inboxAttempts(),
        retentionOf.resolvedDeadLetters(),
        ...endsRetention(settings.keepMs),
      ];
      use(keepClean(db, policies, { onError }));
      use(watchOutbox(db, onError));
      use(watchDeadEvents({ db, consumer, onError }));
    }
    if (does("relay")) {
      const about = { name: "matchmaking relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: tellPublished })).start();
    }
    let matcher: Matcher | undefined;
    const live = use(await openLiveRules({ path: settings.rulesPath, onChange: () => matcher?.wake(), onError }));
    const rules = () => live.current();
    const known = use(await openKnownModes({ db, rules, onError }));
    const modes = () => known.all();
    const ids = openTicketIds(settings.ticketSecrets);
    const queue = openQueue(settings.redisUrl, {
      ...parts,
      ids,
      outbox: openOutbox({ wakeups, topic }),
      endsTopic: topicOf("ends"),
      records: does("recorder"),
      modes,
      onRequeued: onJoined,
    });
    const countAndReport = (error: unknown) => {
      countDependencyError(error);
      onError(error);
    };
    if (does("consumer")) {
      const { attemptsMax, backoff } = workerSettings;
      const inbox = openInbox({
        attemptsMax,
        backoff,
        db,
        consumer,
        read: readEvent,
        effect: onAccountEvent({ queue, modes }),
        wakeups,
        topic: topicOf(inboxDlqTable),
        onError: countAndReport,
      });
      use(inbox.redriver).start();
      use(keepSubscribed({ bus, consumer, subjects: consumers[consumer], handle: inbox.handle, onError }));
    }
    if (does("matcher")) {
      const gauges = queueGauges();
      use(gauges.observe());
      const about = {
        queue,
        rules,
        modes,
        wakeups,
        topicOf: joinedTopic,
        onError: countAndReport,
        onSwept: gauges.record,
      };
      matcher = use(startMatcher(about));
    }
    if (does("api")) {
      const commands = createCommands({ db, queue, ids, rules, onJoined });
      matchmakingRoutes(app, { authenticate, ...countCommandErrors(commands) });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: () => wakeups.signal(topic) }));
    debug((on) => debugRoutes(on, { db, rules }));
  },
});
