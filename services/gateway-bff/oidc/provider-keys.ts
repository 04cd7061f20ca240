/**
 * The identity provider's public keys. An unknown key ID causes one reload, because the provider may have just rotated its
 * keys. A flood of invented key IDs causes at most one reload in ten seconds.
 */
import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import { callTimeoutMs, providerFetch } from "./provider-fetch.ts";

const reloadIntervalMs = 10_000;
const cacheMaxMs = 10 * 60_000;

export function providerKeys(jwksUri: URL, now = () => performance.now()): JWTVerifyGetKey {
  const keySet = createRemoteJWKSet(jwksUri, {
    timeoutDuration: callTimeoutMs,
    cacheMaxAge: cacheMaxMs,
    // jose's own cooldown also starts at the first load and would refuse a newer key, so `reload` below replaces it.
    cooldownDuration: Number.POSITIVE_INFINITY,
    [customFetch]: providerFetch,
  });
  let lastReload: { readonly at: number; readonly done: Promise<void> } | undefined;

  function reload(): Promise<void> {
    if (lastReload && now() - lastReload.at < reloadIntervalMs) return lastReload.done;
    const done = keySet.reload().catch((error) => {
      lastReload = undefined; // A failed reload does not count: the next token may reload.
      throw error;
    });
    lastReload = { at: now(), done };
    return done;
  }

  return async (header, token) => {
    try {
      return await keySet(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await reload();
      return keySet(header, token);
    }
  };
}
