/** What the matchmaking service is put together from. */
import { consumers } from "@todoke/contracts";
import { service } from "@todoke/service";
import { openCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { openKnownModes } from "./known-modes.ts";
import { keepMatching, type Matcher } from "./matcher.ts";
import { onAccountEvent, readEvent } from "./on-account-event.ts";
import { openQueue } from "./open-queue.ts";
import { debugRoutes } from "./routes/debug.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { openRules } from "./rules/index.ts";
import { endsRetention } from "./store/retention.ts";
import { countingFailures, queueGauges, tellDependencyError } from "./telemetry.ts";
import { openTicketIds } from "./ticket-id.ts";

export const { configFaults, dead, events, migrate, start } = service({
  name: "matchmaking",
  port: 8084,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  roles: ["matcher", "recorder"],
  emits: ["matchmaking.events"],
  consumes: { subjects: consumers.matchmaking },
  retention: ({ keepMs }) => endsRetention(keepMs),
  async build({
    settings,
    hasRole,
    app,
    db,
    wakeups,
    outbox,
    authenticate,
    use,
    addReadinessCheck,
    debug,
    onError,
    topicOf,
  }) {
    const topicOfMode = (mode: string) => `${topicOf("tickets")}.${mode}`;
    const onJoined = (mode: string) => wakeups.signal(topicOfMode(mode));
    const onDependencyError = (error: unknown) => {
      tellDependencyError(error);
      onError(error);
    };
    let matcher: Matcher | undefined;
    const live = use(await openRules({ path: settings.rulesPath, onChange: () => matcher?.wake(), onError }));
    const rules = () => live.current();
    const known = use(await openKnownModes({ db, rules, onError }));
    const modes = () => known.all();
    const ids = openTicketIds(settings.ticketSecrets);
    const queue = openQueue(settings.redisUrl, {
      db,
      wakeups,
      use,
      addReadinessCheck,
      onError,
      ids,
      outbox,
      endsTopic: topicOf("ends"),
      records: hasRole("recorder"),
      modes,
      onGivenBack: onJoined,
    });
    if (hasRole("matcher")) {
      const gauges = queueGauges();
      use(gauges.watch());
      const options = { queue, rules, modes, wakeups, topicOf: topicOfMode, onSwept: gauges.tellSwept };
      matcher = use(keepMatching({ ...options, onError: onDependencyError }));
    }
    if (hasRole("api")) {
      const commands = openCommands({ db, queue, ids, rules, onJoined });
      matchmakingRoutes(app, { authenticate, ...countingFailures(commands) });
    }
    debug((on) => debugRoutes(on, { db, rules }));
    return { read: readEvent, effect: onAccountEvent({ queue, modes }), onError: onDependencyError };
  },
});
