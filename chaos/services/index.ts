/**
 * The services under test. A new one is a file beside this that says what it is to the harness, and an entry below
 * (docs/guides/chaos.md).
 */
import type { EventBus } from "@todoke/kernel/bus";
import type { Evidence } from "../evidence.ts";
import type { Command } from "../history.ts";
import type { Violation } from "../invariants.ts";
import type { Random } from "../random.ts";
import type { WatchedTable } from "../watch.ts";
import { entitlement } from "./entitlement.ts";
import { notification } from "./notification.ts";
import { orders } from "./orders.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Where what is outside of the services is found. */
interface Outside {
  /** The receiver of notifications. */
  readonly webhookUrl: string;
  /** The broker of orders. */
  readonly orderBrokerUrl: string;
}

export interface ServiceUnderTest {
  /** As `todoke serve` calls it; its schema is named alike. */
  readonly name: string;
  /** Its processes, from the start to the end of a run. */
  readonly copies: number;
  load(): Promise<{
    migrate(env: Env, options: { readonly dryRun: boolean }): Promise<unknown>;
    start(
      env: Env,
      outside: { openBus(name: string): Promise<EventBus> },
    ): Promise<AsyncDisposable & { readonly url: string }>;
  }>;
  /** Its settings, besides its database and the bus. */
  env(outside: Outside): Record<string, string>;
  /** Words in the requests after which its commits are decided: where a connection is cut. */
  readonly commits: readonly string[];
  readonly publishes: boolean;
  readonly consumes: boolean;
  /** Failpoints that its processes pass, by the beginnings of their names. */
  readonly failpoints: readonly string[];
  /** SQL that locks rows which its commands or workers want, for as long as its transaction lasts. */
  readonly lock: string;
  /** Its tables that are worked by claims. */
  readonly tables: readonly WatchedTable[];
  /** What its clients ask for. Without it nobody calls it. */
  readonly workload?: (random: Random) => Workload;
  /** How many commands it gets, beside the rate of the run: as many, unless told otherwise. */
  readonly share?: number;
  /** The ids of the commands that took effect, by its tables. */
  carriedOut?(evidence: Evidence): readonly string[];
  /** SQL that counts what is still to be done, as `unfinished`: 0 once it is quiet. */
  readonly unfinished: string;
  /** What the checker needs to see of its tables: a name for each, and the SQL. */
  readonly evidence: Readonly<Record<string, string>>;
  check(evidence: Evidence): Violation[];
}

/** One client's wishes. */
export interface Workload {
  /** The next thing to do: one command, several in one call, or one sent twice at once. */
  next(): Wish;
  /** Hears of every command that was answered with success. */
  heard(command: Command): void;
}

/** One command's part of the answer to many. */
export interface Part {
  readonly status: number;
  readonly body: string;
  readonly replayed: boolean;
}

export interface Wish {
  readonly commands: readonly Command[];
  /** How they are sent: each by itself, each twice at once, or together in one call. */
  readonly by: "one" | "twice" | "batch";
  /** Whether the client gives up when it does not hear, rather than asking again. */
  readonly impatient?: boolean;
  /** How they go together, and how the answer comes apart: one per command, in order. */
  readonly batch?: {
    readonly path: string;
    readonly body: unknown;
    split(answer: string): readonly Part[];
  };
  /** Read after success: the path, and the version in an answer. */
  readonly readBack?: { readonly path: string; version(answer: string): number };
}

export const services: readonly ServiceUnderTest[] = [entitlement, notification, orders];

export function serviceNamed(name: string): ServiceUnderTest {
  const found = services.find((service) => service.name === name);
  if (!found) throw new Error(`"${name}" is none of ${services.map((service) => service.name).join(", ")}`);
  return found;
}
