/** The configuration of npm `oidc-provider`: what a client can rely on, as at a real provider. */
import { randomBytes } from "node:crypto";
import type { AdapterFactory, ClientMetadata, Configuration, JWK, KoaContextWithOIDC } from "oidc-provider";
import { toLoginUrl } from "./login.ts";
import { showErrorPage, showLoggedOutPage, showLogoutPage } from "./pages.ts";
import { getClaims, getSubject, type User } from "./users.ts";

/** A confidential client. */
export interface Client {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris?: readonly string[];
  /** Called when one of its users logs out here. */
  readonly backchannelLogoutUri?: string;
}

export interface ConfigurationOptions {
  readonly clients: readonly Client[];
  readonly users: readonly User[];
  readonly adapter: AdapterFactory;
  readonly keys: readonly JWK[];
  readonly cookieKey: string;
}

export const createCookieKey = (): string => randomBytes(32).toString("base64url");

const hour = 3_600;
const day = 24 * hour;

export function buildConfiguration(options: ConfigurationOptions): Configuration {
  const { clients, users, adapter, keys, cookieKey } = options;
  return {
    adapter,
    jwks: { keys: [...keys] },
    clients: clients.map(toClientMetadata),
    async findAccount(_ctx, subject) {
      const user = users.find((each) => getSubject(each) === subject);
      return user && { accountId: subject, claims: async () => getClaims(user) };
    },
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "locale", "preferred_username"],
    },
    // Claims are in the ID token too, as with Keycloak.
    conformIdTokenClaims: false,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      revocation: { enabled: true, allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: { enabled: true, logoutSource, postLogoutSuccessSource },
      dPoP: { enabled: false },
      resourceIndicators: { enabled: false },
    },
    interactions: { url: toLoginUrl },
    loadExistingGrant,
    responseTypes: ["code"],
    pkce: { required: () => true },
    // Rotated at every use; a token that is used twice ends the session.
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      IdToken: hour,
      Interaction: hour,
      RefreshToken: 14 * day,
      Session: 14 * day,
      Grant: 14 * day,
    },
    // Distinct names: cookies ignore ports, and the gateway is on the same host.
    cookies: {
      keys: [cookieKey],
      names: { session: "provider_session", interaction: "provider_log_in", resume: "provider_resume" },
    },
    discovery: { ui_locales_supported: ["en", "ja"] },
    clientBasedCORS: () => false,
    renderError: async (ctx, out) => showErrorPage(ctx, { ...out }),
    // The dispatcher of the library rejects loopback, and every client that is notified of a logout is on loopback.
    fetch: (url, { dispatcher: _refusing, ...options } = {}) => fetch(url, options),
  };
}

function toClientMetadata(client: Client): ClientMetadata {
  const { clientId, clientSecret, redirectUris, postLogoutRedirectUris = [], backchannelLogoutUri } = client;
  return {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [...redirectUris],
    post_logout_redirect_uris: [...postLogoutRedirectUris],
    grant_types: ["authorization_code", "refresh_token"],
    // The login time is in every ID token, as with Keycloak.
    require_auth_time: true,
    // The session id (`sid`) is in the ID token and in the logout token.
    ...(backchannelLogoutUri && {
      backchannel_logout_uri: backchannelLogoutUri,
      backchannel_logout_session_required: true,
    }),
  };
}

const allScopes = "openid offline_access email profile";

/** All clients are ours, so every requested scope is granted. */
async function loadExistingGrant({ oidc }: KoaContextWithOIDC) {
  const { provider, session, client, account } = oidc;
  const known = client && session?.grantIdFor(client.clientId);
  const existing = known ? await provider.Grant.find(known) : undefined;
  if (existing || !client || !account) return existing;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: account.accountId });
  grant.addOIDCScope(allScopes);
  await grant.save();
  return grant;
}

async function logoutSource(ctx: KoaContextWithOIDC, form: string): Promise<void> {
  showLogoutPage(ctx, form);
}

async function postLogoutSuccessSource(ctx: KoaContextWithOIDC): Promise<void> {
  showLoggedOutPage(ctx);
}
