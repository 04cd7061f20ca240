/** The user in the requests that `todoke dev` prints: alice of the demo provider, so that a browser shows what they did. */
import type { User } from "@todoke/identity";
import type { Env } from "./services.ts";

export interface ExampleUser {
  readonly userId: string;
  /** Also the idempotency key of the printed grant. */
  readonly purchaseId: string;
}

/** The user of the README, who cannot log in. */
export const unknownUser: ExampleUser = { userId: "u_123", purchaseId: "p_456" };

/** The account service responds within milliseconds. A start does not wait longer than this for an example. */
const resolveTimeoutMs = 2_000;

/**
 * Finds the user of an identity as the gateway does at a login: the first call creates the user, and later calls and logins
 * change nothing. Returns undefined if account does not respond or does not accept the gateway's key.
 */
export async function resolveExampleUser(env: Env, issuer: string, user: User): Promise<ExampleUser | undefined> {
  // Imported here because it loads a web framework, which `todoke help` does not need.
  const { openSigner, readSigningKey } = await import("@todoke/http");
  const key = readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", []);
  if (!key || !env.ACCOUNT_URL) return undefined;
  try {
    const token = await openSigner({ issuer: "gateway-bff", key }).tokenFor("account");
    const response = await fetch(new URL("/identities:resolve", env.ACCOUNT_URL), {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(toIdentity(issuer, user)),
      signal: AbortSignal.timeout(resolveTimeoutMs),
    });
    const { user_id: userId } = (await response.json()) as { user_id?: unknown };
    // A key belongs to one request: it differs from that of the README, and from that of an alice at another issuer.
    return typeof userId === "string" ? { userId, purchaseId: `p_${userId.slice(-4)}` } : undefined;
  } catch {
    return undefined; // The services run, and the requests work with any user.
  }
}

/** With the claims that the provider sends at a login, so that the login has nothing to update. */
const toIdentity = (provider: string, { username, subject, name, email, emailVerified, locale }: User) => ({
  provider,
  subject: subject ?? username,
  email,
  email_verified: emailVerified,
  display_name: name,
  locale,
});
