/** The services under test. Add a service as a file beside this and an entry below (docs/guides/chaos.md). */
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

/** URLs of external systems. */
interface Outside {
  readonly webhookUrl: string;
  readonly orderBrokerUrl: string;
}

export interface ServiceUnderTest {
  /** Its name in `todoke serve`, and of its schema. Its database and its role are named `todoke_<name>`. */
  readonly name: string;
  /** Number of processes. */
  readonly copies: number;
  load(): Promise<{
    migrate(env: Env, options: { readonly dryRun: boolean }): Promise<unknown>;
    start(
      env: Env,
      outside: { openBus(name: string): Promise<EventBus> },
    ): Promise<AsyncDisposable & { readonly url: string }>;
  }>;
  /** Settings other than database and bus. */
  env(outside: Outside): Record<string, string>;
  /** Texts of the requests that commit, at which a connection is cut. */
  readonly commits: readonly string[];
  readonly publishes: boolean;
  readonly consumes: boolean;
  /** Name prefixes of the failpoints in its processes. */
  readonly failpoints: readonly string[];
  /** SQL that locks rows of its commands or workers. */
  readonly lock: string;
  /** Its claimed tables. */
  readonly tables: readonly WatchedTable[];
  /** Its clients' commands; missing if it has no clients. */
  readonly workload?: (random: Random) => Workload;
  /** Share of the run's command rate. Default: 1. */
  readonly share?: number;
  /** IDs of the commands that took effect, according to its tables. */
  effectiveCommands?(evidence: Evidence): readonly string[];
  /** SQL that counts unfinished jobs in its own database as `unfinished`. Events that no consumer has processed are found apart. */
  readonly unfinished: string;
  /** SQL for the checker's evidence, by name. */
  readonly evidence: Readonly<Record<string, string>>;
  check(evidence: Evidence): Violation[];
}

/** The work items of one client. */
export interface Workload {
  next(): WorkItem;
  /** Called with every accepted command. */
  onAccepted(command: Command): void;
}

/** The part of a batch response that belongs to one command. */
export interface Part {
  readonly status: number;
  readonly body: string;
  readonly replayed: boolean;
}

export interface WorkItem {
  readonly commands: readonly Command[];
  /** Sent one by one, twice at once, or in one call. */
  readonly by: "one" | "twice" | "batch";
  /** The client does not retry. */
  readonly impatient?: boolean;
  /** The batch request, and its response split by command, in order. */
  readonly batch?: {
    readonly path: string;
    readonly body: unknown;
    split(answer: string): readonly Part[];
  };
  /** A read after success: the path, and how to get the version from its response. */
  readonly readBack?: { readonly path: string; version(answer: string): number };
}

export const services: readonly ServiceUnderTest[] = [entitlement, notification, orders];

export function getService(name: string): ServiceUnderTest {
  const found = services.find((service) => service.name === name);
  if (!found) throw new Error(`"${name}" is not one of ${services.map((service) => service.name).join(", ")}`);
  return found;
}
