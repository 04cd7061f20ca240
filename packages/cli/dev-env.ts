/** What services see under `todoke dev`. */
import { hash } from "node:crypto";
import type { Env } from "./services.ts";

/**
 * The API key that `todoke dev` prints for trying things out. It is handed to services only where the database is the
 * embedded one: a server with data that matters never accepts it.
 */
export const devKey = "tdk_dev";

const devKeyEntry = `dev=entitlements:write+points:write+orders:write+read=${hash("sha256", devKey, "hex")}`;

/** `given` with the database that runs; TODOKE_DEV opens the debug surfaces. */
export function devEnv(given: Env, databaseUrl: string): Env {
  const keys = [given.TODOKE_API_KEYS, given.DATABASE_URL ? undefined : devKeyEntry].filter(Boolean).join(",");
  return { ...given, DATABASE_URL: databaseUrl, TODOKE_DEV: "true", TODOKE_API_KEYS: keys };
}
