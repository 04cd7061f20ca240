/**
 * A demo OpenID provider for `npm start` and the tests.
 *
 * It implements the real protocol (code flow with PKCE, rotating refresh tokens, RP-initiated and back-channel logout,
 * rotating keys), so the gateway works with it as with any other provider. Its passwords are not secret, so it listens on
 * loopback only. No other package imports npm `oidc-provider`.
 */
export { demoUsers } from "./demo-users.ts";
export {
  type Client,
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from "./provider.ts";
export type { User } from "./users.ts";
