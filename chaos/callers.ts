/** Who calls: two back-ends, who use the same idempotency keys for commands of their own. */
import { hash } from "node:crypto";

export const callers = ["shop", "game"] as const;

export const tokenOf = (caller: string): string => `tdk_chaos_${caller}`;

/** As every service takes them. */
export const apiKeys = callers
  .map((caller) => `${caller}=entitlements:write+orders:write+read=${hash("sha256", tokenOf(caller), "hex")}`)
  .join(",");
