/** Two callers, which use the same idempotency keys for different commands. */
import { hash } from "node:crypto";

export const callers = ["shop", "game"] as const;

export const tokenFor = (caller: string): string => `tdk_chaos_${caller}`;

/** The setting TODOKE_API_KEYS. */
export const apiKeys = callers
  .map(
    (caller) =>
      `${caller}=entitlements:write+orders:write+points:write+read=${hash("sha256", tokenFor(caller), "hex")}`,
  )
  .join(",");
