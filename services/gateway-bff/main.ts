/** Puts the service together: the only file here that starts anything. */
import { consumers } from "@todoke/contracts";
import { openSigner } from "@todoke/http";
import { deadInboxEvents, inboxDlqTable, keepSubscribed, openInbox, watchDeadEvents } from "@todoke/kernel/inbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { periodically } from "@todoke/kernel/worker";
import { service } from "@todoke/service";
import { resolveIdentity } from "./commands/resolve-identity.ts";
import { readSettings } from "./config.ts";
import { sessionGuard } from "./guard/session-guard.ts";
import { idleLimits } from "./limits/postgres.ts";
import { rememberRefusals } from "./limits/refusals.ts";
import { openProvider, refreshTokens } from "./oidc/index.ts";
import { onAccountEvent, readEvent } from "./on-account-event.ts";
import { documentsOf } from "./page/index.ts";
import { addressesOf, gatewayRoutes } from "./routes/index.ts";
import { openStores } from "./stores.ts";
import { openUpstreams } from "./upstreams/index.ts";

const name = "gateway-bff";
const consumer = name;

export const { configFaults, dead, migrate, start } = service({
  name,
  port: 8080,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "consumer", "upkeep"],
  settings: readSettings,
  dead: [deadInboxEvents(consumer)],
  usersBy: "session",
  hosts: ({ origin }) => [new URL(origin).hostname],
  docs: ({ upstreams }) => ({ sources: documentsOf(addressesOf(upstreams.urls)) }),
  async build({ settings, workerSettings, apiDocs, does, app, db, bus, wakeups, use, needs, onError, topicOf }) {
    const { tokenFor } = openSigner({ issuer: name, key: settings.signingKey });
    const upstreams = use(openUpstreams({ ...settings.upstreams, tokenFor }));
    const { sessions, limiter } = openStores(settings, { db, use, needs, onError });
    if (does("upkeep")) {
      const policies = [idleLimits, retentionOf.processedEvents(settings.processedKeepMs), retentionOf.inboxAttempts()];
      use(keepClean(db, [...policies, retentionOf.resolvedDeadLetters()], { onError }));
      use(periodically(() => sessions.removeEnded(), { everyMs: 60_000, what: "removing ended sessions", onError }));
      use(watchDeadEvents({ db, consumer, onError }));
    }
    if (does("consumer")) {
      const { attemptsMax, backoff } = workerSettings;
      const inbox = openInbox({
        attemptsMax,
        backoff,
        db,
        consumer,
        read: readEvent,
        effect: onAccountEvent(sessions),
        wakeups,
        topic: topicOf(inboxDlqTable),
        onError,
      });
      use(inbox.redriver).start();
      use(keepSubscribed({ bus, consumer, subjects: consumers[consumer], handle: inbox.handle, onError }));
    }
    if (does("api")) {
      const { origin, isLoopback } = settings;
      const provider = openProvider({ ...settings.provider, redirectUri: `${origin}/login/callback`, onError });
      const onRefreshDue = use(refreshTokens({ sessions, provider, onError }));
      gatewayRoutes(app, {
        ...settings,
        apiDocs,
        authenticate: sessionGuard({ sessions, origin, isLoopback, onRefreshDue }),
        sessions,
        upstreams,
        urls: settings.upstreams.urls,
        tokenFor,
        provider,
        resolveIdentity: resolveIdentity(upstreams.account),
        limiter: rememberRefusals(limiter),
        onError,
      });
    }
  },
});
