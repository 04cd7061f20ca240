/**
 * Ends sessions because their user has logged out at the identity provider (back-channel logout).
 *
 * The token is authenticated before anything is counted, so that strangers cannot use up the provider's limit. Ending the
 * sessions, remembering the logout and recording the token's ID are one step: after a crash or an error the provider may
 * send the same token again.
 */
import { problems } from "@todoke/http";
import { nativeCodeMs } from "../oidc/native-code.ts";
import { loginMs } from "../oidc/pending-login.ts";
import type { Provider } from "../oidc/provider.ts";
import { logoutTokenRefused } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";

export interface EndByProviderDeps {
  readonly provider: Pick<Provider, "verifyLogout">;
  readonly sessions: Pick<SessionStore, "endByProvider">;
}

// Longer than a login takes, a native client's code included, so that a login that was ended at the provider opens no session; and
// longer than a logout token is valid (token-verifiers.ts), so that no token counts twice.
const rememberMs = loginMs + nativeCodeMs + 4 * 60_000;

// Anybody may send tokens, and each costs the check of a signature. More than this are refused unchecked, so a flood holds
// at most this many bodies of 16 KiB.
export const verifyingMax = 1_000;

/** Returns a function that ends the sessions of a logout token; `count` throws if the issuer is over its limit. */
export function endByProvider({ provider, sessions }: EndByProviderDeps) {
  let verifying = 0;

  async function verify(logoutToken: string) {
    if (verifying >= verifyingMax)
      throw problems.unavailable("too many logouts at once; try again", { retryAfterSeconds: 1 });
    verifying++;
    try {
      return await provider.verifyLogout(logoutToken);
    } finally {
      verifying--;
    }
  }

  return async (logoutToken: string, count: (issuer: string) => Promise<void>): Promise<number> => {
    const { jti: tokenId, ...logout } = await verify(logoutToken);
    await count(logout.issuer);
    const ended = await sessions.endByProvider({ ...logout, tokenId, rememberMs });
    if (ended === undefined) throw logoutTokenRefused("it was used before");
    return ended;
  };
}
