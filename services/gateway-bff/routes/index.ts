/** All routes of the gateway, and the hooks that every request passes first. */
import type { HttpApp } from "@todoke/http";
import type { StaffReads } from "@todoke/service";
import type { Deps } from "../deps.ts";
import { stripIdentityHeaders } from "../guard/identity-headers.ts";
import { redirectToOrigin } from "../guard/origin-host.ts";
import { decorateSession } from "../guard/session-guard.ts";
import { setRequestSource } from "../guard/source.ts";
import { sendHsts } from "../guard/tls.ts";
import { translateProblems } from "../language/problem-texts.ts";
import { limitRequests } from "../limits/hook.ts";
import { countByIssuer } from "../limits/issuer.ts";
import { ownName } from "../staff/ask-services.ts";
import { topicsReader } from "../staff/read-changes.ts";
import { watchChanges } from "../staff/watch-changes.ts";
import { apiDocumentRoutes } from "./api-documents.ts";
import { auditLogRoute } from "./audit-log.ts";
import { consoleRoutes } from "./console.ts";
import { deadLetterGroupsRoute } from "./dead-letter-groups.ts";
import { describeRefusals } from "./describe-refusals.ts";
import { forwardRoute, rejectStaleLogin } from "./forward.ts";
import { inboxRoutes } from "./inbox.ts";
import { keyRoutes } from "./keys.ts";
import { loginRoutes } from "./login.ts";
import { logoutRoutes } from "./logout.ts";
import { matchmakingRoutes } from "./matchmaking.ts";
import { meRoute } from "./me.ts";
import { overviewRoute } from "./overview.ts";
import { pageRoutes } from "./page.ts";
import { pointsRoutes } from "./points.ts";
import { profileRoutes } from "./profile.ts";
import { sessionRoutes, userSessionRoutes } from "./sessions.ts";
import { staffRoutes } from "./staff.ts";
import { staffMatchmakingRoutes } from "./staff-matchmaking.ts";
import { staffOrderRoutes } from "./staff-orders.ts";
import { staffStreamRoute } from "./staff-stream.ts";
import { staffUserRoutes } from "./staff-users.ts";
import { userRoutes } from "./users.ts";
import { whyRoute } from "./why.ts";

const forwardedRoutes = [
  ...userRoutes,
  ...matchmakingRoutes,
  ...pointsRoutes,
  ...staffRoutes,
  ...staffUserRoutes,
  ...staffOrderRoutes,
  ...staffMatchmakingRoutes,
];

export function gatewayRoutes(app: HttpApp, deps: Deps): void {
  if (deps.isLoopback) redirectToOrigin(app, deps.origin);
  else sendHsts(app);
  stripIdentityHeaders(app);
  setRequestSource(app, deps.limits);
  decorateSession(app);
  limitRequests(app, deps);
  describeRefusals(app);
  // After the limits, whose refusals are translated too.
  translateProblems(app);
  loginRoutes(app, deps);
  logoutRoutes(app, { ...deps, countLogout: countByIssuer(deps) });
  for (const route of forwardedRoutes) forwardRoute(app, deps, route);
  // Routes with more than one service behind them, of which this is one.
  const staff = { ...deps, staffReads: serveOwnStaff(deps) };
  auditLogRoute(app, staff);
  deadLetterGroupsRoute(app, staff);
  overviewRoute(app, staff);
  keyRoutes(app, staff);
  followChanges(app, deps, staff.staffReads);
  meRoute(app, deps);
  profileRoutes(app, deps);
  whyRoute(app, deps);
  sessionRoutes(app, deps);
  userSessionRoutes(app, deps);
  inboxRoutes(app, { ...deps, notificationUrl: deps.urls.notification });
  const services = serviceAddresses({ ...deps.urls, orders: deps.ordersUrl });
  pageRoutes(app, deps);
  if (deps.apiDocs ?? true) apiDocumentRoutes(app, { ...deps, services });
  consoleRoutes(app);
}

function followChanges(app: HttpApp, deps: Deps, { changes }: StaffReads): void {
  const { intervalMs = 1_000, ...more } = deps.changes ?? {};
  const watcher = watchChanges({ read: topicsReader(deps, changes), intervalMs, onError: deps.onError });
  app.addHook("onClose", () => watcher[Symbol.asyncDispose]());
  staffStreamRoute(app, { ...deps, ...more, watcher });
}

/** The gateway's own dead letters and acts, below the path of all services. Changes need a fresh login, as everywhere. */
function serveOwnStaff({ serveStaff, authenticate, reauthenticateMs }: Deps): StaffReads {
  return serveStaff({
    prefix: `/v1/admin/services/${ownName}`,
    // The routes for any service describe them.
    hide: true,
    async authenticate(request, reply) {
      const principal = await authenticate(request, reply);
      if (request.method !== "GET") rejectStaleLogin(request.session, reauthenticateMs);
      return principal;
    },
  });
}

/** The address of each deployed service, by its name. */
const serviceAddresses = (urls: Readonly<Record<string, URL | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(urls).flatMap(([name, url]) => (url ? [[name, url.origin]] : [])));
