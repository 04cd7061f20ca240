/** A Redis Sentinel on loopback that watches one primary, alone or with others. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EngineDriver } from "./engine.ts";
import { redis } from "./redis.ts";

export interface WatchedPrimary {
  /** The name that clients ask for. */
  readonly name: string;
  /** The URL of the primary. Its user and password must be those of the replicas too. */
  readonly url: string;
  /** Of several Sentinels that must agree that the primary is down. Default: one alone, with a random password. */
  readonly group?: { readonly quorum: number; readonly password: string };
}

/** `settings` are those of the watched primary: `{ "failover-timeout": "10000" }`. */
export function sentinel({ name, url, group }: WatchedPrimary): EngineDriver<"sentinel"> {
  const primary = new URL(url);
  return {
    name: "sentinel",
    urlVariable: "TEST_SENTINEL_URL",

    findBinary: redis.findBinary,

    async prepare({ binary, dataFolder, settings, supervisor }) {
      const { quorum = 1, password = randomBytes(18).toString("base64url") } = group ?? {};
      const configFile = join(supervisor.folder, "sentinel.conf");
      return async (port) => {
        const own = { bind: "127.0.0.1", port, dir: JSON.stringify(dataFolder), requirepass: password };
        const login = { "auth-user": primary.username, "auth-pass": decodeURIComponent(primary.password) };
        const lines = [
          ...Object.entries(own).map(([key, value]) => `${key} ${value}`),
          `sentinel monitor ${name} ${primary.hostname} ${primary.port} ${quorum}`,
          `sentinel sentinel-pass ${password}`,
          ...Object.entries({ ...login, ...settings }).map(([key, value]) => `sentinel ${key} ${name} ${value}`),
        ];
        // The Sentinel writes what it learns into this file.
        await writeFile(configFile, `${lines.join("\n")}\n`, { mode: 0o600 });
        return {
          url: `redis://:${password}@127.0.0.1:${port}`,
          commands: [{ file: binary.file, args: [configFile, "--sentinel"], stopSignal: "SIGKILL" }],
        };
      };
    },

    probe: redis.probe,
  };
}
