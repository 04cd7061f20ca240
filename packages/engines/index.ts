/**
 * Engines: PostgreSQL, NATS, RabbitMQ and Redis, found, started, installed and stopped.
 *
 * What this package promises of an engine it started:
 *  - it listens on 127.0.0.1 only, on a port nobody else had, with its data in a folder nobody else uses;
 *  - it runs as root and as an ordinary user alike;
 *  - it stops when it is disposed, and also when its owner is interrupted, throws, or is killed with -9; then no process
 *    and no temporary folder is left;
 *  - `kill()` is a true kill -9 of all its processes, and `start()` brings it back on the same port and data.
 */
import { canInstall, installWithApt } from "./apt.ts";
import { type Engine, type EngineName, type EngineOptions, NotFound, type Recipe } from "./engine.ts";
import { nats } from "./nats.ts";
import { postgres } from "./postgres/index.ts";
import { startPrivate } from "./private-engine.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { redis } from "./redis.ts";

export { type Engine, type EngineName, type EngineOptions, NotFound } from "./engine.ts";

export interface FindOptions extends EngineOptions {
  /** Hears what is done to this machine, before it is done. */
  readonly say?: (line: string) => void;
}

const recipes: Record<EngineName, Recipe> = { postgres, nats, rabbitmq, redis };

/** Starts a private server from a program on this machine. Rejects, saying what to do, when there is none. */
export async function startEngine(name: EngineName, options: EngineOptions = {}): Promise<Engine> {
  const recipe = recipes[name];
  const program = await recipe.locate();
  if (program instanceof NotFound) throw new Error(program.toString());
  return startPrivate(recipe, program, options);
}

/**
 * Finds an engine: the one that the environment names (TEST_POSTGRES_URL, …), else a private one from a program on this
 * machine, else, as root on Debian, one installed by apt.
 */
export async function findEngine(name: EngineName, options: FindOptions = {}): Promise<Engine | NotFound> {
  const recipe = recipes[name];
  const url = process.env[recipe.urlVariable];
  if (url !== undefined && url !== "") return attach(recipe, url);
  const program = await recipe.locate();
  if (!(program instanceof NotFound)) return startPrivate(recipe, program, options);
  return recipe.debianPackage !== undefined && canInstall() ? install(recipe, recipe.debianPackage, options) : program;
}

async function install(recipe: Recipe, debianPackage: string, options: FindOptions): Promise<Engine | NotFound> {
  try {
    await installWithApt(debianPackage, options.say ?? console.log);
  } catch (error) {
    return new NotFound(
      recipe.name,
      `${messageOf(error)}.`,
      `Install it, or name a running one in ${recipe.urlVariable}.`,
    );
  }
  const program = await recipe.locate();
  return program instanceof NotFound
    ? program
    : startPrivate(recipe, { ...program, origin: `apt (${program.file})` }, options);
}

/** A server that somebody else runs: we use it and leave it as it is. */
async function attach(recipe: Recipe, url: string): Promise<Engine | NotFound> {
  const notOurs = async () => {
    throw new Error(`${recipe.urlVariable} names a server that is not ours to kill or start; use startEngine for that`);
  };
  try {
    const { version } = await recipe.ask(new URL(url));
    const origin = `environment (${recipe.urlVariable})`;
    return {
      name: recipe.name,
      version,
      url,
      origin,
      pid: undefined,
      kill: notOurs,
      start: notOurs,
      async [Symbol.asyncDispose]() {},
    };
  } catch (error) {
    const remedy = `Start it, correct the variable, or unset it to have a private server.`;
    return new NotFound(recipe.name, `${recipe.urlVariable} is set, but ${messageOf(error)}.`, remedy);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}
