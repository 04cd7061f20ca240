/**
 * The API key that `todoke dev` prints for trying things out. It is handed to services only where the database is the
 * embedded one: a server with data that matters never accepts it.
 */
import { hash } from "node:crypto";

export const devKey = {
  secret: "tdk_dev",
  /** Its entry in TODOKE_API_KEYS. */
  entry: `dev=entitlements:write+points:write+orders:write+read=${hash("sha256", "tdk_dev", "hex")}`,
};
