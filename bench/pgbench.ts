/** pgbench, PostgreSQL's load generator: the throughput of the database without a service in front of it. */
import { execFile } from "node:child_process";
import { access, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Debian installs pgbench here, outside the PATH. */
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
  throw new Error("pgbench is not installed: install PostgreSQL's server package (Debian: postgresql-15)");
}

export interface Script {
  readonly file: string;
  readonly url: string;
  readonly schema: string;
  /** One statement, after `\set name …` lines for its variables (`:name`). */
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
    if (tps === undefined) throw new Error(`pgbench printed no tps: ${stdout}`);
    return Number(tps);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Makes a service's statement a pgbench script: variable `k` is random, `values` replace `$1`, `$2`, …; line breaks go. */
export function toPgbenchScript(statement: string, values: readonly string[]): string {
  const sql = values
    .reduce(
      (text, value, index) => text.replaceAll(new RegExp(`\\$${index + 1}(::\\w+)?`, "g"), () => value),
      statement,
    )
    .replaceAll(/--.*$/gm, "")
    // pgbench reads a colon inside a string as the start of a variable.
    .replaceAll(/:(MI|SS)/g, "' || chr(58) || '$1")
    .replaceAll("\n", " ");
  return `\\set k random(1, 9000000000000000000)\n${sql};\n`;
}

/** The client count with the highest throughput, after a two-second trial of each. */
export async function bestClientCount(run: (clients: number, seconds: number) => Promise<number>): Promise<number> {
  const trials: { clients: number; perSecond: number }[] = [];
  for (const clients of [2, 4, 8, 16, 32]) trials.push({ clients, perSecond: await run(clients, 2) });
  return trials.sort((a, b) => b.perSecond - a.perSecond)[0]?.clients ?? 8;
}
