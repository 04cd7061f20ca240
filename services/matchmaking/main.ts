/** Puts the matchmaking service together. */
import { consumers } from "@todoke/contracts";
import { service } from "@todoke/service";
import { readSettings } from "./config.ts";
import { createCommands, openQueue } from "./deps.ts";
import { onAccountEvent, readEvent } from "./events/on-account-event.ts";
import { openTicketIds } from "./queue/ticket-id.ts";
import { debugRoutes } from "./routes/debug.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { matchmakingAudit } from "./store/audit-rules.ts";
import { endsRetention } from "./store/retention.ts";
import { matchmakingLookups } from "./store/why.ts";
import { countCommandErrors, countDependencyError, queueGauges } from "./telemetry.ts";
import { openKnownModes } from "./workers/known-modes.ts";
import { openLiveRules } from "./workers/live-rules.ts";
import { type Matcher, startMatcher } from "./workers/matcher.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "matchmaking",
  port: 8084,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  roles: ["matcher", "recorder"],
  emits: ["matchmaking.events"],
  consumes: { subjects: consumers.matchmaking },
  retention: ({ keepMs }) => endsRetention(keepMs),
  audited: matchmakingAudit,
  explains: matchmakingLookups,
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
    idempotencyMs,
    debug,
    onError,
    topicOf,
  }) {
    const topicOfMode = (mode: string) => `${topicOf("tickets")}.${mode}`;
    const onJoined = (mode: string) => wakeups.signal(topicOfMode(mode));
    const onDependencyError = (error: unknown) => {
      countDependencyError(error);
      onError(error);
    };
    let matcher: Matcher | undefined;
    const live = use(await openLiveRules({ path: settings.rulesPath, onChange: () => matcher?.wake(), onError }));
    const rules = () => live.current();
    const known = use(await openKnownModes({ db, rules, onError }));
    const modes = () => known.all();
    const ids = openTicketIds(settings.ticketSecrets);
    const queue = openQueue(settings.redisUrl, {
      db,
      wakeups,
      use,
      addReadinessCheck,
      idempotencyMs,
      onError,
      ids,
      outbox,
      endsTopic: topicOf("ends"),
      records: hasRole("recorder"),
      modes,
      onRequeued: onJoined,
    });
    if (hasRole("matcher")) {
      const gauges = queueGauges();
      use(gauges.observe());
      const options = { queue, rules, modes, wakeups, topicOf: topicOfMode, onSwept: gauges.record };
      matcher = use(startMatcher({ ...options, onError: onDependencyError }));
    }
    if (hasRole("api")) {
      const commands = createCommands({ db, queue, ids, rules, modes, onJoined });
      matchmakingRoutes(app, { authenticate, ...countCommandErrors(commands) });
    }
    debug((on) => debugRoutes(on, { db, rules }));
    return { decode: readEvent, effect: onAccountEvent({ queue, modes }), onError: onDependencyError };
  },
});
