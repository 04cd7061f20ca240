/** How the library is set up: what a client may rely on here, as it may at a provider in earnest. */
import { randomBytes } from "node:crypto";
import type { AdapterFactory, ClientMetadata, Configuration, JWK, KoaContextWithOIDC } from "oidc-provider";
import { logInUrl } from "./log-in.ts";
import { showError, showLoggedOut, showLogOut } from "./pages.ts";
import { claimsOf, subjectOf, type User } from "./users.ts";

/** A client as this provider knows it: ours, and able to keep a secret. */
export interface Client {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris?: readonly string[];
  /** Is told when one of its users logs out here. */
  readonly backchannelLogoutUri?: string;
}

export interface Setup {
  readonly clients: readonly Client[];
  readonly users: readonly User[];
  readonly memory: AdapterFactory;
  readonly keys: readonly JWK[];
  readonly cookieKey: string;
}

export const newCookieKey = (): string => randomBytes(32).toString("base64url");

const hour = 3_600;
const day = 24 * hour;

export function configurationOf(setup: Setup): Configuration {
  const { clients, users, memory, keys, cookieKey } = setup;
  return {
    adapter: memory,
    jwks: { keys: [...keys] },
    clients: clients.map(metadataOf),
    async findAccount(_ctx, subject) {
      const user = users.find((each) => subjectOf(each) === subject);
      return user && { accountId: subject, claims: async () => claimsOf(user) };
    },
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "locale", "preferred_username"],
    },
    // In the ID token as well as at userinfo, as Keycloak has them.
    conformIdTokenClaims: false,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      revocation: { enabled: true, allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: { enabled: true, logoutSource, postLogoutSuccessSource },
      dPoP: { enabled: false },
      resourceIndicators: { enabled: false },
    },
    interactions: { url: logInUrl },
    loadExistingGrant,
    responseTypes: ["code"],
    pkce: { required: () => true },
    // To whoever may refresh, and a new one each time: one that is used twice ends the whole log-in.
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
    // Names of their own: cookies know no ports, and the gateway is on this host too.
    cookies: {
      keys: [cookieKey],
      names: { session: "provider_session", interaction: "provider_log_in", resume: "provider_resume" },
    },
    discovery: { ui_locales_supported: ["en", "ja"] },
    clientBasedCORS: () => false,
    renderError: async (ctx, out) => showError(ctx, { ...out }),
    // The library has loopback refused by its dispatcher, and all who are told of a log-out here are on loopback.
    fetch: (url, { dispatcher: _refusing, ...options } = {}) => fetch(url, options),
  };
}

function metadataOf(client: Client): ClientMetadata {
  const { clientId, clientSecret, redirectUris, postLogoutRedirectUris = [], backchannelLogoutUri } = client;
  return {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [...redirectUris],
    post_logout_redirect_uris: [...postLogoutRedirectUris],
    grant_types: ["authorization_code", "refresh_token"],
    // When the user has logged in here is in every ID token, as with Keycloak.
    require_auth_time: true,
    // The name of the session here (`sid`) is in the ID token, and in what is told of a log-out.
    ...(backchannelLogoutUri && {
      backchannel_logout_uri: backchannelLogoutUri,
      backchannel_logout_session_required: true,
    }),
  };
}

const allScopes = "openid offline_access email profile";

/** Whoever logs in at a client of ours has granted it what it asks for. */
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
  showLogOut(ctx, form);
}

async function postLogoutSuccessSource(ctx: KoaContextWithOIDC): Promise<void> {
  showLoggedOut(ctx);
}
