/**
 * Runs a private engine on a free loopback port, with a folder of its own. It can be killed and started again. When its
 * owner ends, for any reason, nothing of it is left (see supervisor-process.ts).
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type {
  EngineDriver as Driver,
  Engine,
  EngineBinary,
  EngineOptions,
  Launch,
  LaunchPlan,
  ServerInfo,
  ServerName,
} from "./engine.ts";
import { findFreePort } from "./ports.ts";
import { killTree } from "./process-tree.ts";
import { type SupervisedProcess, type Supervisor, startSupervisor } from "./supervisor.ts";

type EngineDriver = Driver<ServerName>;

/** RabbitMQ takes 4 s on an idle machine. PostgreSQL after a crash must replay everything since its last checkpoint. */
const readyTimeoutMs = 120_000;

/** In about one of a thousand parallel runs another process takes the port between our check and our start. */
const portAttemptsMax = 5;

/** The messages of the four engines when their port is in use. */
const portInUsePattern = /address (already )?in use|eaddrinuse|port \d+ (is )?(already )?in use|port_already_used/i;

class PortInUse extends Error {
  override readonly name = "PortInUse";
}

export async function startPrivateEngine(
  driver: EngineDriver,
  binary: EngineBinary,
  options: EngineOptions,
): Promise<Engine> {
  const { host } = options;
  if (host && driver.name !== "nats") throw new Error(`${driver.name} can only be started on this host`);
  const supervisor = await startSupervisor(driver.name, { log: options.log, parentFolder: options.temporaryIn });
  try {
    const temporary = options.dir === undefined;
    const dataFolder = temporary ? join(supervisor.folder, "data") : resolve(options.dir);
    await mkdir(dataFolder, { recursive: true });
    const { settings = {} } = options;
    const launch = await driver.prepare({ binary, dataFolder, temporary, settings, supervisor, host });
    const server = new ServerProcesses(driver, supervisor);
    const { port, url, info } = await startOnFreePort(server, launch, options.port);
    return {
      name: driver.name,
      version: info.version,
      url,
      origin: binary.origin,
      get pid() {
        return server.pid;
      },
      kill: () => server.kill(),
      start: async () => void (await server.start(() => launch(port))),
      [Symbol.asyncDispose]: () => supervisor[Symbol.asyncDispose](),
    };
  } catch (error) {
    await supervisor[Symbol.asyncDispose]();
    throw new Error(`${driver.name} did not start: ${(error as Error).message}`, { cause: error });
  }
}

async function startOnFreePort(server: ServerProcesses, launch: Launch, fixed: number | undefined) {
  for (let attempt = 1; ; attempt++) {
    const port = fixed ?? (await findFreePort());
    try {
      return { port, ...(await server.start(() => launch(port))) };
    } catch (error) {
      if (!(error instanceof PortInUse) || attempt === portAttemptsMax) throw error;
      if (fixed !== undefined) throw new Error(`port ${fixed} of 127.0.0.1 is already in use`, { cause: error });
    }
  }
}

/** The running processes of one engine. */
class ServerProcesses {
  readonly #driver: EngineDriver;
  readonly #supervisor: Supervisor;
  #running: SupervisedProcess[] = [];

  constructor(driver: EngineDriver, supervisor: Supervisor) {
    this.#driver = driver;
    this.#supervisor = supervisor;
  }

  /** The server itself starts last. */
  get pid(): number | undefined {
    return this.#running.at(-1)?.pid;
  }

  async start(plan: () => Promise<LaunchPlan>): Promise<{ readonly url: string; readonly info: ServerInfo }> {
    if (this.#running.length > 0) throw new Error(`${this.#driver.name} is already running`);
    const launch = await plan();
    try {
      for (const command of launch.commands) await this.#run(command);
      return { url: launch.url, info: await this.#waitUntilReady(launch) };
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  async kill(): Promise<void> {
    const running = this.#running.splice(0);
    await Promise.all(running.map((each) => killTree(each.pid)));
    await Promise.all(running.map((each) => each.exited));
  }

  async #run(command: LaunchPlan["commands"][number]): Promise<void> {
    const supervised = await this.#supervisor.run(command);
    this.#running.push(supervised);
    void supervised.exited.then(() => {
      this.#running = this.#running.filter((each) => each !== supervised);
    });
  }

  /** Probes until the server responds, exits, or runs into the timeout. */
  async #waitUntilReady(launch: LaunchPlan): Promise<ServerInfo> {
    const expected = launch.commands.length;
    const deadline = Date.now() + readyTimeoutMs;
    for (let lastError: unknown; ; await delay(20)) {
      if (this.#running.length < expected) throw this.#failure("exited before it was ready");
      if (Date.now() > deadline) throw this.#failure(`was not ready within ${readyTimeoutMs} ms`, lastError);
      try {
        const info = await this.#driver.probe(new URL(launch.url));
        if (launch.node === undefined || info.node === launch.node) return info;
        throw new PortInUse(`another server responds at ${launch.url}`);
      } catch (error) {
        if (error instanceof PortInUse) throw error;
        lastError = error;
      }
    }
  }

  #failure(what: string, cause?: unknown): Error {
    const output = this.#supervisor.lastLines();
    const message = `${this.#driver.name} ${what}. Its last lines:\n${output}`;
    return portInUsePattern.test(output) ? new PortInUse(message, { cause }) : new Error(message, { cause });
  }
}
