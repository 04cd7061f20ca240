/**
 * An OpenID provider for trying out: what `npm start` and the tests log in at where no real one is named.
 *
 * It speaks the protocol in earnest (code flow with PKCE, refresh tokens that rotate, log-out by the client and by the
 * back channel, keys that rotate), so that the gateway meets nothing here that it would not meet elsewhere. Its users and
 * their passwords are no secret, so it answers on loopback only. It is the sole importer of npm `oidc-provider`.
 */
export { demoUsers } from "./demo-users.ts";
export {
  type Client,
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from "./provider.ts";
export type { User } from "./users.ts";
