/**
 * Log-in and log-out by OpenID Connect, with any issuer: `/login`, `/login/callback`, `/login/token`, `/logout` and
 * `/login/backchannel-logout`. No token of the provider ever reaches a client.
 */
import type { HttpApp } from "@todoke/http";
import { callbackRoute } from "./callback-route.ts";
import type { OidcDeps } from "./deps.ts";
import { loginRoute } from "./login-route.ts";
import { backchannelLogoutRoute, logoutRoute } from "./logout-routes.ts";
import { nativeTokenRoute } from "./native-token-route.ts";

export type { Identity, ResolveIdentity } from "./identity.ts";
export { openProvider } from "./provider.ts";
export { refreshTokens } from "./refresh.ts";

export function oidcRoutes(app: HttpApp, deps: OidcDeps): void {
  loginRoute(app, deps);
  callbackRoute(app, deps);
  nativeTokenRoute(app, deps);
  logoutRoute(app, deps);
  backchannelLogoutRoute(app, deps);
}
