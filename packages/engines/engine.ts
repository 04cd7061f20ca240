/**
 * The words of this package: what an engine is to those who use it, and what each kind of engine must tell about itself
 * so that one life cycle (private-engine.ts) serves them all.
 */

import type { Keeper } from "./keep.ts";
import type { Command } from "./keeper.ts";

export type EngineName = "postgres" | "nats" | "rabbitmq" | "redis";

/** A running server, ours or somebody else's. Disposing it stops ours and leaves theirs alone. */
export interface Engine extends AsyncDisposable {
  readonly name: EngineName;
  readonly version: string;
  /** postgres://…, nats://…, amqp://…, redis://…, with the credentials it wants. */
  readonly url: string;
  /** Where it comes from: "embedded", "PATH (/usr/sbin/nats-server)", "apt (…)", "environment (TEST_NATS_URL)". */
  readonly origin: string;
  /** Undefined when the server is not ours, or does not run. */
  readonly pid: number | undefined;
  /** kill -9 of the server and every process of it. What it had on disk stays, as after a power cut of the program. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and the same data. */
  start(): Promise<void>;
}

export interface EngineOptions {
  /** Where its data stays. Without it the data is temporary and gone with the engine. */
  readonly dir?: string;
  /** A fixed port on 127.0.0.1. Without it, a free one. */
  readonly port?: number;
  /** The server's own settings, in its own words: `{ fsync: "off" }`, `{ max_payload: "2MB" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Hears every line the server prints. */
  readonly log?: (line: string) => void;
}

/** There is no such engine here, and what a person can do about it. */
export class NotFound {
  readonly engine: EngineName;
  readonly reason: string;
  readonly remedy: string;

  constructor(engine: EngineName, reason: string, remedy: string) {
    this.engine = engine;
    this.reason = reason;
    this.remedy = remedy;
  }

  toString(): string {
    return `${this.engine}: ${this.reason} ${this.remedy}`;
  }
}

/** A server's program on this machine. */
export interface Program {
  readonly file: string;
  readonly origin: string;
}

/** What a server says when asked who it is. */
export interface Answer {
  readonly version: string;
  /** Its own name, where it has one: tells our server from a stranger who took the port first. */
  readonly node?: string;
}

/** Everything a kind of engine gets to set itself up. */
export interface Site {
  readonly program: Program;
  /** Its data goes here and nowhere else. */
  readonly home: string;
  /** True when `home` vanishes with the engine: nothing needs to reach the disk in an orderly way. */
  readonly temporary: boolean;
  readonly settings: Readonly<Record<string, string>>;
  /** Runs its processes; `keeper.folder` is for files that matter only while it runs. */
  readonly keeper: Keeper;
}

/** One start of a server: the processes in the order they start, the server itself last. */
export interface Launch {
  readonly url: string;
  readonly commands: readonly Command[];
  /** The name it will answer with, see Answer. */
  readonly node?: string;
}

/** One kind of engine. */
export interface Recipe {
  readonly name: EngineName;
  /** The variable that names a server to use instead of a private one. */
  readonly urlVariable: string;
  /** The Debian package that holds it, where we would install it. */
  readonly debianPackage?: string;
  locate(): Promise<Program | NotFound>;
  /** Makes its data ready, once. What it returns is called for each port tried and at each later start. */
  prepare(site: Site): Promise<(port: number) => Promise<Launch>>;
  /** Resolves when the server at `url` is open for work; rejects otherwise. */
  ask(url: URL): Promise<Answer>;
}
