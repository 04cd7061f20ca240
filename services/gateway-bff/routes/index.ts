/** All that the gateway serves, and what every request passes before it gets there. */
import type { HttpApp, Signer } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { dropHearsay } from "../guard/edge.ts";
import { knowSessions } from "../guard/session-guard.ts";
import { knowSources } from "../guard/source.ts";
import { demandTls } from "../guard/tls.ts";
import { languageOf } from "../language.ts";
import { type LimitOptions, limitRequests } from "../limits/hook.ts";
import { countByIssuer } from "../limits/issuer.ts";
import type { RememberingLimiter } from "../limits/refusals.ts";
import type { Limits } from "../limits/settings.ts";
import type { OidcDeps } from "../oidc/deps.ts";
import { oidcRoutes } from "../oidc/index.ts";
import { pageRoutes } from "../page/index.ts";
import { speakTheirLanguage } from "../texts.ts";
import type { UpstreamUrls } from "../upstreams/index.ts";
import { inboxRoutes } from "./inbox.ts";
import type { InboxStreamDeps } from "./inbox-stream.ts";
import { profileRoute } from "./profile.ts";
import { sessionRoutes } from "./sessions.ts";
import { tableRoutes } from "./table.ts";

/** How long others may take; as usual, where nothing is said. */
type Patience = Pick<LimitOptions, "waitMaxMs"> & Pick<InboxStreamDeps, "streamTimeoutMs">;

export interface GatewayDeps extends Deps, Omit<OidcDeps, "countLogout">, Patience {
  readonly limiter: RememberingLimiter;
  readonly limits: Limits;
  readonly urls: UpstreamUrls;
  readonly tokenFor: Signer["tokenFor"];
  /** Whether the API documents of the services are served: yes, unless set to false. */
  readonly apiDocs?: boolean;
}

export function gatewayRoutes(app: HttpApp, deps: GatewayDeps): void {
  if (!deps.isLoopback) demandTls(app);
  dropHearsay(app);
  knowSources(app, deps.limits);
  knowSessions(app);
  limitRequests(app, deps);
  // After the limits: their refusals are put into words too.
  speakTheirLanguage(app);
  oidcRoutes(app, { ...deps, countLogout: countByIssuer(deps) });
  tableRoutes(app, deps);
  profileRoute(app, deps);
  sessionRoutes(app, deps);
  inboxRoutes(app, { ...deps, notificationUrl: deps.urls.notification });
  pageRoutes(app, { ...deps, services: addressesOf(deps.urls), languageOf });
}

/** Where each service is that is deployed here, by its name. */
export const addressesOf = (urls: UpstreamUrls): Record<string, string> =>
  Object.fromEntries(Object.entries(urls).flatMap(([name, url]) => (url ? [[name, url.origin]] : [])));
