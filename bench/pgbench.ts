/** PostgreSQL's own load generator: what the database does when nothing is in front of it. */
import { execFile } from "node:child_process";
import { access, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where Debian puts it, beside the PATH. */
const debian = "/usr/lib/postgresql";

export async function findPgbench(): Promise<string> {
  const versions = await readdir(debian).catch(() => []);
  const folders = [
    ...(process.env.PATH ?? "").split(":"),
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(debian, version, "bin")),
  ];
  for (const folder of folders) {
    const file = join(folder, "pgbench");
    if (
      await access(file).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  throw new Error("pgbench is not on this machine: install PostgreSQL's server package (Debian: postgresql-15)");
}

export interface Script {
  readonly file: string;
  readonly url: string;
  readonly schema: string;
  /** One statement; `:name` is a variable that a line `\set name …` before it has set. */
  readonly sql: string;
  readonly clients: number;
  readonly seconds: number;
}

/** Transactions per second, each statement prepared once per connection. */
export async function pgbench({ file, url, schema, sql, clients, seconds }: Script): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "todoke-pgbench-"));
  try {
    const script = join(folder, "script.sql");
    await writeFile(script, sql);
    const options = ["--no-vacuum", "--protocol=prepared", `--client=${clients}`, `--time=${seconds}`];
    const env = { ...process.env, PGOPTIONS: `-c search_path=${schema}` };
    const { stdout } = await run(file, [...options, "--jobs=2", `--file=${script}`, url], { env });
    const tps = /tps = ([\d.]+)/.exec(stdout)?.[1];
    if (tps === undefined) throw new Error(`pgbench did not say how many: ${stdout}`);
    return Number(tps);
  } finally {
    await rm(folder, { recursive: true });
  }
}
