/** All routes of the gateway, and the hooks that every request passes first. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { stripIdentityHeaders } from "../guard/identity-headers.ts";
import { redirectToOrigin } from "../guard/origin-host.ts";
import { decorateSession } from "../guard/session-guard.ts";
import { setRequestSource } from "../guard/source.ts";
import { sendHsts } from "../guard/tls.ts";
import { translateProblems } from "../language/problem-texts.ts";
import { limitRequests } from "../limits/hook.ts";
import { countByIssuer } from "../limits/issuer.ts";
import { apiDocumentRoutes } from "./api-documents.ts";
import { describeRefusals } from "./describe-refusals.ts";
import { forwardRoute } from "./forward.ts";
import { inboxRoutes } from "./inbox.ts";
import { loginRoutes } from "./login.ts";
import { logoutRoutes } from "./logout.ts";
import { matchmakingRoutes } from "./matchmaking.ts";
import { meRoute } from "./me.ts";
import { pageRoutes } from "./page.ts";
import { pointsRoutes } from "./points.ts";
import { profileRoutes } from "./profile.ts";
import { sessionRoutes } from "./sessions.ts";
import { userRoutes } from "./users.ts";
import { whyRoute } from "./why.ts";

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
  for (const route of [...userRoutes, ...matchmakingRoutes, ...pointsRoutes]) forwardRoute(app, deps, route);
  meRoute(app, deps);
  profileRoutes(app, deps);
  whyRoute(app, deps);
  sessionRoutes(app, deps);
  inboxRoutes(app, { ...deps, notificationUrl: deps.urls.notification });
  const services = serviceAddresses({ ...deps.urls, orders: deps.ordersUrl });
  pageRoutes(app, { ...deps, services });
  if (deps.apiDocs ?? true) apiDocumentRoutes(app, { ...deps, services });
}

/** The address of each deployed service, by its name. */
const serviceAddresses = (urls: Readonly<Record<string, URL | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(urls).flatMap(([name, url]) => (url ? [[name, url.origin]] : [])));
