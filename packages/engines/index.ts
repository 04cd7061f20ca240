/**
 * Finds, installs, starts and stops PostgreSQL, NATS, RabbitMQ and Redis.
 *
 * An engine that this package starts
 *  - listens on 127.0.0.1 only, on a port and with a data folder of its own;
 *  - can be started by root and by an ordinary user;
 *  - stops when it is disposed, and also when its owner is interrupted, throws, or is killed with -9. No process and no
 *    temporary folder is left;
 *  - is killed by `kill()` with all its processes (kill -9), and starts again with `start()` on the same port and data.
 */
import { canInstallWithApt, installWithApt } from "./apt.ts";
import {
  type Engine,
  type EngineDriver,
  type EngineName,
  EngineNotFound,
  type EngineOptions,
  type ServerName,
} from "./engine.ts";
import { nats } from "./nats.ts";
import { pgbouncer } from "./pgbouncer.ts";
import { postgres } from "./postgres/index.ts";
import { startPrivateEngine } from "./private-engine.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { redis } from "./redis.ts";
import { sentinel, type WatchedPrimary } from "./sentinel.ts";

export { canInstallWithApt, installWithApt } from "./apt.ts";
export { type Engine, type EngineHost, type EngineName, EngineNotFound, type EngineOptions } from "./engine.ts";
export { findExecutable } from "./find-binary.ts";
export { isPortFree } from "./ports.ts";
export { exchange } from "./tcp-exchange.ts";

export interface FindOptions extends EngineOptions {
  /** Called with the installation command before it runs. Default: prints it. */
  readonly onInstall?: (line: string) => void;
}

const drivers: Record<EngineName, EngineDriver> = { postgres, nats, rabbitmq, redis };

/** Starts a private server from an installed binary. If there is none, rejects with what to do. */
export const startEngine = (name: EngineName, options: EngineOptions = {}): Promise<Engine> =>
  startInstalled(drivers[name], options);

/** Starts a Redis Sentinel likewise. */
export const startSentinel = (primary: WatchedPrimary, options: EngineOptions = {}): Promise<Engine> =>
  startInstalled(sentinel(primary), options);

/** Starts a private PostgreSQL from this binary `postgres`, such as one of another version. */
export const startPostgresFrom = (file: string, options: EngineOptions = {}): Promise<Engine> =>
  startPrivateEngine(postgres, { file, origin: file }, options);

async function startInstalled(driver: EngineDriver<ServerName>, options: EngineOptions): Promise<Engine> {
  const binary = await driver.findBinary();
  if (binary instanceof EngineNotFound) throw new Error(`${driver.name}: ${binary.message}`);
  return startPrivateEngine(driver, binary, options);
}

/**
 * Finds an engine: the external server in TEST_POSTGRES_URL, …; else a private one from an installed binary; else, as
 * root on Debian, one that apt installs.
 */
export const findEngine = (name: EngineName, options: FindOptions = {}): Promise<Engine | EngineNotFound> =>
  findServer(drivers[name], options);

/** Finds PgBouncer likewise, and starts it before the PostgreSQL server of the URL. */
export const findPgbouncer = (postgresUrl: string, options: FindOptions = {}): Promise<Engine | EngineNotFound> =>
  findServer(pgbouncer(postgresUrl), options);

async function findServer(driver: EngineDriver<ServerName>, options: FindOptions): Promise<Engine | EngineNotFound> {
  const url = process.env[driver.urlVariable];
  if (url !== undefined && url !== "") return useExternalServer(driver, url);
  const binary = await driver.findBinary();
  if (!(binary instanceof EngineNotFound)) return startPrivateEngine(driver, binary, options);
  if (driver.debianPackage === undefined || !canInstallWithApt()) return binary;
  try {
    await installWithApt(driver.debianPackage, options.onInstall ?? console.log);
  } catch (error) {
    return new EngineNotFound(`${formatError(error)}. Install it, or name a running one in ${driver.urlVariable}.`);
  }
  const installed = await driver.findBinary();
  if (installed instanceof EngineNotFound) return installed;
  return startPrivateEngine(driver, { ...installed, origin: `apt (${installed.file})` }, options);
}

/** A server that we did not start and never stop. */
async function useExternalServer(driver: EngineDriver<ServerName>, url: string): Promise<Engine | EngineNotFound> {
  const rejectExternal = async () => {
    throw new Error(`${driver.urlVariable} names an external server: it cannot be killed or started by a test`);
  };
  try {
    const { version } = await driver.probe(new URL(url));
    const origin = `environment (${driver.urlVariable})`;
    return {
      name: driver.name,
      version,
      url,
      origin,
      pid: undefined,
      kill: rejectExternal,
      start: rejectExternal,
      async [Symbol.asyncDispose]() {},
    };
  } catch (error) {
    const message = `${driver.urlVariable} is set, but ${formatError(error)}.`;
    return new EngineNotFound(`${message} Start it, correct the variable, or unset it to use a private server.`);
  }
}

function formatError(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(formatError).join(", ");
  return error instanceof Error ? error.message : String(error);
}
