/**
 * The life of a private engine: started on a free port of loopback in a folder of its own, killed and started again as
 * often as a test likes, and gone without a trace at the end, whatever the end is (see keeper.ts).
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer, Engine, EngineOptions, Launch, Program, Recipe } from "./engine.ts";
import { freePort } from "./free-port.ts";
import { type Keeper, type Kept, startKeeper } from "./keep.ts";
import { killTree } from "./process-tree.ts";

/** RabbitMQ takes 4 s on an idle machine; PostgreSQL after a crash, as long as it had written since its last checkpoint. */
const readyMs = 120_000;

/** Somebody else takes the port between our look and our start about once in a thousand parallel runs. */
const portsTriedMax = 5;

/** How the four say that a port is not theirs to have. */
const portTaken = /address (already )?in use|eaddrinuse|port \d+ (is )?(already )?in use|port_already_used/i;

class PortTaken extends Error {
  override readonly name = "PortTaken";
}

export async function startPrivate(recipe: Recipe, program: Program, options: EngineOptions): Promise<Engine> {
  const keeper = await startKeeper(recipe.name, options.log);
  try {
    const home = options.dir === undefined ? join(keeper.folder, "home") : resolve(options.dir);
    await mkdir(home, { recursive: true });
    const temporary = options.dir === undefined;
    const launch = await recipe.prepare({ program, home, temporary, settings: options.settings ?? {}, keeper });
    const server = new Server(recipe, keeper);
    const { port, url, answer } = await startOnSomePort(server, launch, options.port);
    return {
      name: recipe.name,
      version: answer.version,
      url,
      origin: program.origin,
      get pid() {
        return server.pid;
      },
      kill: () => server.kill(),
      start: async () => void (await server.start(() => launch(port))),
      [Symbol.asyncDispose]: () => keeper[Symbol.asyncDispose](),
    };
  } catch (error) {
    await keeper[Symbol.asyncDispose]();
    throw new Error(`${recipe.name} did not start: ${(error as Error).message}`, { cause: error });
  }
}

async function startOnSomePort(server: Server, launch: (port: number) => Promise<Launch>, fixed: number | undefined) {
  for (let attempt = 1; ; attempt++) {
    const port = fixed ?? (await freePort());
    try {
      return { port, ...(await server.start(() => launch(port))) };
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === portsTriedMax) throw error;
      if (fixed !== undefined) throw new Error(`port ${fixed} of 127.0.0.1 is in use already`, { cause: error });
    }
  }
}

/** The processes of one engine, while they run. */
class Server {
  readonly #recipe: Recipe;
  readonly #keeper: Keeper;
  #running: Kept[] = [];

  constructor(recipe: Recipe, keeper: Keeper) {
    this.#recipe = recipe;
    this.#keeper = keeper;
  }

  /** The server itself starts last. */
  get pid(): number | undefined {
    return this.#running.at(-1)?.pid;
  }

  async start(plan: () => Promise<Launch>): Promise<{ readonly url: string; readonly answer: Answer }> {
    if (this.#running.length > 0) throw new Error(`${this.#recipe.name} runs already`);
    const launch = await plan();
    try {
      for (const command of launch.commands) await this.#run(command);
      return { url: launch.url, answer: await this.#ready(launch) };
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  async kill(): Promise<void> {
    const killed = this.#running.splice(0);
    await Promise.all(killed.map((one) => killTree(one.pid)));
    await Promise.all(killed.map((one) => one.exited));
  }

  async #run(command: Launch["commands"][number]): Promise<void> {
    const kept = await this.#keeper.run(command);
    this.#running.push(kept);
    void kept.exited.then(() => {
      this.#running = this.#running.filter((one) => one !== kept);
    });
  }

  /** Asks until it answers, dies, or has had its time. */
  async #ready(launch: Launch): Promise<Answer> {
    const all = launch.commands.length;
    const deadline = Date.now() + readyMs;
    for (let why: unknown; ; await delay(20)) {
      if (this.#running.length < all) throw this.#failure("ended before it was ready");
      if (Date.now() > deadline) throw this.#failure(`was not ready within ${readyMs} ms`, why);
      try {
        const answer = await this.#recipe.ask(new URL(launch.url));
        if (launch.node === undefined || answer.node === launch.node) return answer;
        throw new PortTaken(`another server answers at ${launch.url}`);
      } catch (error) {
        if (error instanceof PortTaken) throw error;
        why = error;
      }
    }
  }

  #failure(what: string, cause?: unknown): Error {
    const said = this.#keeper.lastLines();
    const message = `${this.#recipe.name} ${what}. Its last lines:\n${said}`;
    return portTaken.test(said) ? new PortTaken(message, { cause }) : new Error(message, { cause });
  }
}
