/** Puts the service together: the only file here that starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, openOutbox, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { openCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { keepMatching, type Matcher } from "./matcher.ts";
import { openQueue } from "./open-queue.ts";
import { debugRoutes } from "./routes/debug.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { openRules } from "./rules/index.ts";
import { endsRetention } from "./store/retention.ts";
import { countingFailures, queueGauges, tellDependencyError, tellPublished, watchOutbox } from "./telemetry.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "matchmaking",
  port: 8084,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "matcher", "recorder", "relay", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build(parts) {
    const { settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf } = parts;
    const topic = topicOf("outbox_events");
    const joinedTopic = (mode: string) => `${topicOf("tickets")}.${mode}`;
    const onJoined = (mode: string) => wakeups.signal(joinedTopic(mode));
    if (does("upkeep")) {
      const policies = [
        retentionOf.publishedEvents(),
        retentionOf.idempotencyKeys(),
        ...endsRetention(settings.keepMs),
      ];
      use(keepClean(db, policies, { onError }));
      use(watchOutbox(db, onError));
    }
    if (does("relay")) {
      const about = { name: "matchmaking relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(relay({ ...about, wakeups, topic, onError, onPublished: tellPublished })).start();
    }
    let matcher: Matcher | undefined;
    const live = use(await openRules({ path: settings.rulesPath, onChange: () => matcher?.wake(), onError }));
    const rules = () => live.current();
    const queue = openQueue(settings.redisUrl, {
      ...parts,
      outbox: openOutbox({ wakeups, topic }),
      endsTopic: topicOf("ends"),
      records: does("recorder"),
      modes: () => [...rules().modes.keys()],
      onGivenBack: onJoined,
    });
    if (does("matcher")) {
      const gauges = queueGauges();
      use(gauges.watch());
      const tell = (error: unknown) => {
        tellDependencyError(error);
        onError(error);
      };
      const about = { queue, rules, wakeups, topicOf: joinedTopic, onError: tell, onSwept: gauges.tellSwept };
      matcher = use(keepMatching(about));
    }
    if (does("api")) {
      const commands = openCommands({ db, queue, rules, onJoined });
      matchmakingRoutes(app, { authenticate, ...countingFailures(commands) });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: () => wakeups.signal(topic) }));
    debug((on) => debugRoutes(on, { db, rules }));
  },
});
