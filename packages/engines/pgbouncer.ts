/** PgBouncer in transaction mode before a PostgreSQL server, on loopback. */
import { chmod, chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EngineDriver } from "./engine.ts";
import { findOnPath } from "./find-binary.ts";
import { findOsUser } from "./postgres/binaries.ts";
import { query } from "./postgres/client.ts";

/** `postgresUrl` names the server, and the user that may log in. `settings` are those of its section [pgbouncer]. */
export function pgbouncer(postgresUrl: string): EngineDriver<"pgbouncer"> {
  const server = new URL(postgresUrl);
  return {
    name: "pgbouncer",
    urlVariable: "TEST_PGBOUNCER_URL",
    debianPackage: "pgbouncer",

    findBinary: () => findOnPath("pgbouncer", ["pgbouncer"]),

    async prepare({ binary, settings, supervisor }) {
      // Like PostgreSQL it refuses to run as root.
      const runAs = process.getuid?.() === 0 ? await findOsUser() : undefined;
      const file = (name: string) => join(supervisor.folder, name);
      const write = async (name: string, text: string) => {
        await writeFile(file(name), text, { mode: 0o600 });
        if (runAs) await chown(file(name), runAs.uid, runAs.gid);
      };
      if (runAs) await chmod(supervisor.folder, 0o711);
      return async (port) => {
        const all = { listen_addr: "127.0.0.1", listen_port: port, unix_socket_dir: "", pool_mode: "transaction" };
        const auth = { auth_type: "scram-sha-256", auth_file: file("users.txt") };
        const lines = Object.entries({ ...all, ...auth, ...settings }).map(([key, value]) => `${key} = ${value}`);
        const database = `* = host=${server.hostname} port=${server.port}`;
        await write("users.txt", `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
        await write("pgbouncer.ini", ["[databases]", database, "[pgbouncer]", ...lines, ""].join("\n"));
        const url = new URL(server);
        url.host = `127.0.0.1:${port}`;
        const args = [file("pgbouncer.ini")];
        return {
          url: url.href,
          commands: [{ file: binary.file, args, stopSignal: "SIGKILL", ...(runAs && { runAs }) }],
        };
      };
    },

    async probe(url) {
      await query(url.href, "select 1");
      return { version: "unknown" };
    },
  };
}
