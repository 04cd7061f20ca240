/** The engines that the tests run on: found or started once, named to the tests by URL, stopped at the end. */
import { once } from "node:events";
import { statfsSync } from "node:fs";
import { freemem } from "node:os";
import { type Engine, type EngineName, EngineNotFound, findEngine } from "@todoke/engines";
import pg from "pg";
import { failed, passed, type Result, skipped, sum } from "./result.ts";

const all: readonly EngineName[] = ["postgres", "nats", "rabbitmq", "redis"];

/**
 * Tests kill servers, and never the machine: what PostgreSQL has handed to the system is safe there, and need not be flushed.
 * Autovacuum would visit hundreds of databases, and those that it has analyzed could not be reused.
 */
export const testSettings: Partial<Record<EngineName, Readonly<Record<string, string>>>> = {
  postgres: { fsync: "off", full_page_writes: "off", autovacuum: "off" },
};

const memoryFolder = "/dev/shm";
/** A full run leaves 3 GB in its databases and write-ahead log. */
const bytesNeeded = 8 * 1024 ** 3;

/** Tests make and truncate tens of thousands of small files: on a disk, the file system takes a fifth of their CPU time. */
function roomInMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(memoryFolder);
    return Math.min(bavail * bsize, freemem()) > bytesNeeded ? memoryFolder : undefined;
  } catch {
    return undefined; // Not Linux.
  }
}

/** The server's password is hashed 4,096 times at each connect, and tests connect thousands of times. */
export async function hashPasswordOnce(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { server_version_num: version } = (await client.query(`show server_version_num`)).rows[0];
    if (version < 160_000) return;
    const password = client.escapeLiteral(decodeURIComponent(new URL(url).password));
    await client.query(`set scram_iterations = 1; alter role current_user password ${password}`);
  } finally {
    await client.end();
  }
}

export interface Engines extends AsyncDisposable {
  find(): Promise<Result>;
  /** How the tests learn of them: TEST_POSTGRES_URL, TEST_NATS_URL, TEST_RABBITMQ_URL, TEST_REDIS_URL. */
  urls(): Record<string, string>;
}

export function findEngines(signal: AbortSignal, names: readonly EngineName[] = all): Engines {
  const running: Engine[] = [];
  const temporaryIn = roomInMemory();

  async function findOne(name: EngineName): Promise<Result> {
    try {
      const engine = await findEngine(name, {
        onInstall: (line) => console.log(`  ${line}`),
        settings: testSettings[name] ?? {},
        ...(name === "postgres" && temporaryIn !== undefined && { temporaryIn }),
      });
      if (engine instanceof EngineNotFound) {
        console.log(`  ${name}: not found`);
        return skipped(`The tests on ${name} were not run. ${engine.message}`);
      }
      running.push(engine);
      const isOurs = engine.pid !== undefined;
      if (name === "postgres" && isOurs) await hashPasswordOnce(engine.url);
      console.log(`  ${name} ${engine.version}, ${engine.origin}`);
      return passed;
    } catch (error) {
      if (!signal.aborted) console.error(error);
      return failed;
    }
  }

  return {
    async find() {
      const interrupted = once(signal, "abort").then(() => [failed]);
      const found = sum(await Promise.race([Promise.all(names.map(findOne)), interrupted]));
      return { ...found, passed: found.failed === 0 && found.passed > 0 ? 1 : 0 };
    },
    urls: () => Object.fromEntries(running.map(({ name, url }) => [`TEST_${name.toUpperCase()}_URL`, url])),
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((engine) => engine[Symbol.asyncDispose]()));
    },
  };
}
