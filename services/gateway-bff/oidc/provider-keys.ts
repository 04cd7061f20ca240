/**
 * The identity provider's public keys. A key that is not known yet is looked for once more at the provider, for it may have
 * changed its keys a moment ago; a flood of tokens with invented key ids makes one such look in ten seconds, no more.
 */
import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import { callTimeoutMs, providerFetch } from "./provider-fetch.ts";

const lookAgainEveryMs = 10_000;
const keepMs = 10 * 60_000;

export function providerKeys(jwksUri: URL, now = () => performance.now()): JWTVerifyGetKey {
  const kept = createRemoteJWKSet(jwksUri, {
    timeoutDuration: callTimeoutMs,
    cacheMaxAge: keepMs,
    // It would also rest after the first look, and refuse a key that is newer than that. When to look again is said below.
    cooldownDuration: Number.POSITIVE_INFINITY,
    [customFetch]: providerFetch,
  });
  let looked: { readonly at: number; readonly end: Promise<void> } | undefined;

  function lookAgain(): Promise<void> {
    if (looked && now() - looked.at < lookAgainEveryMs) return looked.end;
    const end = kept.reload().catch((error) => {
      looked = undefined; // Nothing was seen: the next one may look.
      throw error;
    });
    looked = { at: now(), end };
    return end;
  }

  return async (header, token) => {
    try {
      return await kept(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await lookAgain();
      return kept(header, token);
    }
  };
}
