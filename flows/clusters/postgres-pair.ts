/**
 * A primary and a standby of PostgreSQL, and what an operator does with them. They are those of Debian's package `postgresql`,
 * because the binaries that npm installs lack pg_basebackup.
 */
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Engine, startPostgresFrom } from "@todoke/engines";
import { type Db, openDb } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { wait } from "./faults.ts";

const execute = promisify(execFile);

/** The newest version that is installed. */
export function findPgBasebackup(): string | undefined {
  return globSync("/usr/lib/postgresql/*/bin/pg_basebackup")
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .at(-1);
}

class Server implements AsyncDisposable {
  readonly engine: Engine;
  readonly folder: string;
  readonly db: Db;

  constructor(engine: Engine, folder: string) {
    this.engine = engine;
    this.folder = folder;
    this.db = openDb({ url: engine.url, poolMax: 1, applicationName: "operator" });
  }

  async set(name: string, value: string): Promise<void> {
    await this.db.query(`alter system set ${name} = '${value}'`);
    await this.db.query(`select pg_reload_conf()`);
    await until(`${name} is ${value}`, async () => {
      const { rows } = await this.db.query(`select current_setting($1) as value`, [name]);
      return rows[0].value === value;
    });
  }

  /** Of a standby, as its primary sees it: "sync", "async"; undefined if it is not connected. */
  async standbyState(): Promise<string | undefined> {
    const { rows } = await this.db.query(
      `select sync_state from pg_stat_replication where state = 'streaming' and application_name = 'walreceiver'`,
    );
    return rows[0]?.sync_state;
  }

  /** Sends a signal to the server and all its processes. A frozen server does not fork. */
  async signal(name: NodeJS.Signals): Promise<void> {
    const { pid } = this.engine;
    if (pid === undefined) throw new Error("the server does not run");
    process.kill(pid, name);
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).split(" ").map(Number);
    for (const child of children.filter((each) => each > 0)) {
      try {
        process.kill(child, name);
      } catch {} // It has exited.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.db.end();
    await this.engine[Symbol.asyncDispose]();
  }
}

export type PostgresServer = Server;

export class PostgresPair implements AsyncDisposable {
  readonly #pgBasebackup: string;
  readonly #folder: string;
  readonly #isSynchronous: boolean;
  primary: Server;
  standby: Server;

  private constructor(of: {
    pgBasebackup: string;
    folder: string;
    isSynchronous: boolean;
    primary: Server;
    standby: Server;
  }) {
    this.#pgBasebackup = of.pgBasebackup;
    this.#folder = of.folder;
    this.#isSynchronous = of.isSynchronous;
    this.primary = of.primary;
    this.standby = of.standby;
  }

  /** `isSynchronous`: a commit is answered when the standby has it too. */
  static async start(pgBasebackup: string, { isSynchronous }: { isSynchronous: boolean }): Promise<PostgresPair> {
    const folder = await mkdtemp(join(tmpdir(), "todoke-pair-"));
    await chmod(folder, 0o755);
    try {
      const [one, two] = [join(folder, "one"), join(folder, "two")];
      const startServer = async (dir: string) =>
        new Server(await startPostgresFrom(join(dirname(pgBasebackup), "postgres"), { dir }), dir);
      const primary = await startServer(one);
      await copyData(pgBasebackup, primary, two);
      const standby = await startServer(two);
      const pair = new PostgresPair({ pgBasebackup, folder, isSynchronous, primary, standby });
      await pair.#waitForStandby();
      return pair;
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** As services get it: both servers, in the order of their first roles. */
  get url(): string {
    const [one, two] = [this.primary, this.standby].map(({ engine }) => new URL(engine.url));
    return `${one?.href}`.replace(`@${one?.host}`, `@${one?.host},${two?.host}`);
  }

  /** Makes the standby the primary. It answers alone: there is no other standby to wait for. */
  async promote(): Promise<void> {
    const { db } = this.standby;
    await this.standby.set("synchronous_standby_names", "");
    await db.query(`select pg_promote()`);
    [this.primary, this.standby] = [this.standby, this.primary];
  }

  /** Stops the former primary for good, if it runs, and makes it a standby with a new copy. */
  async rejoin(): Promise<void> {
    await this.standby.engine.kill();
    await copyData(this.#pgBasebackup, this.primary, this.standby.folder);
    await this.standby.engine.start();
    await this.#waitForStandby();
  }

  async #waitForStandby(): Promise<void> {
    await until("the standby is connected", async () => (await this.primary.standbyState()) !== undefined, wait);
    if (!this.#isSynchronous) return;
    await this.primary.set("synchronous_standby_names", "*");
    await until("the standby is synchronous", async () => (await this.primary.standbyState()) === "sync", wait);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.standby[Symbol.asyncDispose]();
    await this.primary[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Copies the data of a running server, as its user, with what a standby needs to follow it. */
async function copyData(pgBasebackup: string, source: Server, folder: string): Promise<void> {
  const { uid, gid } = await stat(join(source.folder, "data"));
  await mkdir(folder, { recursive: true });
  for (const entry of await readdir(folder)) await rm(join(folder, entry), { recursive: true });
  await chown(folder, uid, gid);
  const { host, port, username, password } = new URL(source.engine.url);
  const args = ["--pgdata", join(folder, "data"), "--host", host.replace(`:${port}`, ""), "--port", port];
  const options = ["--username", username, "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"];
  const env = { PATH: "/usr/bin:/bin", PGPASSWORD: decodeURIComponent(password) };
  await execute(pgBasebackup, [...args, ...options, "--no-sync"], { uid, gid, cwd: "/", env });
}
