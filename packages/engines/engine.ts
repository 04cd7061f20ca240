/** The types of this package: an engine as its users see it, and what each kind of engine implements (`EngineDriver`). */
import type { Supervisor } from "./supervisor.ts";
import type { Command } from "./supervisor-process.ts";

export type EngineName = "postgres" | "nats" | "rabbitmq" | "redis";

/** Started like an engine, but each needs another server: PgBouncer a PostgreSQL (`findPgbouncer`), a Sentinel a Redis (`startSentinel`). */
export type ServerName = EngineName | "pgbouncer" | "sentinel";

/** A running server, private or external. Disposing it stops a private one and leaves an external one running. */
export interface Engine extends AsyncDisposable {
  readonly name: ServerName;
  readonly version: string;
  /** postgres://…, nats://…, amqp://…, redis://…, with credentials. */
  readonly url: string;
  /** Where it comes from: "embedded", "PATH (/usr/sbin/nats-server)", "apt (…)", "environment (TEST_NATS_URL)". */
  readonly origin: string;
  /** Undefined if the server is external, or does not run. */
  readonly pid: number | undefined;
  /** kill -9 of the server and all its processes. The data on disk stays. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and the same data. */
  start(): Promise<void>;
}

/** Another host that this machine has, such as a network namespace. */
export interface EngineHost {
  readonly address: string;
  /** What runs a program there: ["nsenter", "--net=/proc/4711/ns/net"]. */
  readonly enter: readonly string[];
}

export interface EngineOptions {
  /** Folder of its data. Default: a temporary folder, removed with the engine. */
  readonly dir?: string;
  /** Where a temporary folder is created. Default: the system's folder for temporary files. */
  readonly temporaryIn?: string;
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Where it runs and listens. Default: here, at 127.0.0.1. Only NATS can be elsewhere. */
  readonly host?: EngineHost;
  /** The server's own settings: `{ fsync: "off" }`, `{ max_payload: "2MB" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called with every line that the server prints. */
  readonly log?: (line: string) => void;
}

/** Why an engine cannot be used here, and what the user can do about it. */
export class EngineNotFound {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** An installed server binary. */
export interface EngineBinary {
  readonly file: string;
  readonly origin: string;
}

/** The version and other facts that a server reports. */
export interface ServerInfo {
  readonly version: string;
  /** Its node name, if it has one: distinguishes our server from another that took the port first. */
  readonly node?: string;
}

/** The context in which a driver sets up its server. */
export interface EngineSetup {
  readonly binary: EngineBinary;
  readonly dataFolder: string;
  readonly host?: EngineHost | undefined;
  /** Whether `dataFolder` is removed with the engine. If so, the server need not stop in an orderly way. */
  readonly temporary: boolean;
  readonly settings: Readonly<Record<string, string>>;
  /** Runs its processes. `supervisor.folder` is for temporary files. */
  readonly supervisor: Supervisor;
}

/** One start of a server: its processes in start order, the server itself last. */
export interface LaunchPlan {
  readonly url: string;
  readonly commands: readonly Command[];
  /** The node name that the server will report, see `ServerInfo`. */
  readonly node?: string;
}

/** Plans a start. Called for each port that is tried and at each later start. */
export type Launch = (port: number) => Promise<LaunchPlan>;

/** One kind of engine. private-engine.ts runs all kinds by this interface. */
export interface EngineDriver<Name extends ServerName = EngineName> {
  readonly name: Name;
  /** The variable with the URL of an external server to use. */
  readonly urlVariable: string;
  /** The Debian package to install it from. */
  readonly debianPackage?: string;
  findBinary(): Promise<EngineBinary | EngineNotFound>;
  /** Prepares the data, once. */
  prepare(setup: EngineSetup): Promise<Launch>;
  /** Resolves when the server at `url` is ready; rejects otherwise. */
  probe(url: URL): Promise<ServerInfo>;
}
