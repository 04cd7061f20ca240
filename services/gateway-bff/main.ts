/** Puts the gateway together. */
import { consumers } from "@todoke/contracts";
import { openSigner } from "@todoke/http";
import { startLoop } from "@todoke/kernel/worker";
import { service } from "@todoke/service";
import { resolveIdentity } from "./commands/resolve-identity.ts";
import { readSettings } from "./config.ts";
import { openStores } from "./deps.ts";
import { onAccountEvent, readEvent } from "./events/on-account-event.ts";
import { sessionGuard } from "./guard/session-guard.ts";
import { localLimiter } from "./limits/local-limiter.ts";
import { openProvider } from "./oidc/provider.ts";
import { gatewayRoutes } from "./routes/index.ts";
import { sessionAudit } from "./store/audit-rules.ts";
import { idleLimits } from "./store/limits.ts";
import { sessionLookups } from "./store/why.ts";
import { openUpstreams } from "./upstreams/index.ts";
import { refreshTokens } from "./workers/refresh-tokens.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "gateway-bff",
  port: 8080,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  consumes: { subjects: consumers["gateway-bff"] },
  retention: () => [idleLimits],
  userAuth: "session",
  hosts: ({ origin }) => [new URL(origin).hostname],
  // /openapi.json is the document of all services.
  openapiPath: "/openapi/gateway-bff.json",
  docs: { title: "Todoke API" },
  audited: sessionAudit,
  explains: sessionLookups,
  async build({ settings, apiDocs, hasRole, app, db, findEntries, use, addReadinessCheck, serveStaff, onError }) {
    const { origin, isLoopback } = settings;
    const { tokenFor } = openSigner({ issuer: "gateway-bff", key: settings.signingKey });
    const upstreams = use(openUpstreams({ ...settings.upstreams, tokenFor }));
    const { sessions, limiter } = openStores(settings, { db, use, addReadinessCheck, onError });
    if (hasRole("maintenance"))
      use(
        startLoop(() => sessions.deleteExpired(), { intervalMs: 60_000, task: "deleting expired sessions", onError }),
      );
    if (hasRole("api")) {
      const provider = openProvider({ ...settings.provider, redirectUri: `${origin}/login/callback`, onError });
      const onRefreshDue = use(refreshTokens({ sessions, provider, onError }));
      gatewayRoutes(app, {
        ...settings,
        apiDocs,
        authenticate: sessionGuard({ sessions, origin, isLoopback, onRefreshDue }),
        db,
        sessions,
        upstreams,
        urls: settings.upstreams.urls,
        tokenFor,
        provider,
        resolveIdentity: resolveIdentity(upstreams.account),
        limiter: localLimiter(limiter),
        serveStaff,
        findEntries,
        onError,
      });
    }
    return { decode: readEvent, effect: onAccountEvent(sessions) };
  },
});
