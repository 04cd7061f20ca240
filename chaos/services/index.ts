/** The services under test. Add a service as a file beside this and an entry below (docs/guides/chaos.md). */
import type { AuditSpec } from "@todoke/kernel/audit";
import type { EventBus } from "@todoke/kernel/bus";
import type { Evidence } from "../evidence.ts";
import type { Harness } from "../harness.ts";
import type { Command, Line, Writer } from "../history.ts";
import type { Violation } from "../invariants.ts";
import type { Random } from "../random.ts";
import type { ServiceAddress } from "../request.ts";
import type { WatchedTable } from "../watch.ts";
import { account } from "./account.ts";
import { entitlement } from "./entitlement.ts";
import { gatewayBff } from "./gateway-bff.ts";
import { matchmaking } from "./matchmaking.ts";
import { notification } from "./notification.ts";
import { orders } from "./orders.ts";
import { points } from "./points.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** URLs of external systems. */
interface Outside {
  readonly webhookUrl: string;
  readonly orderBrokerUrl: string;
  /** The OpenID provider. */
  readonly issuer: string;
  /** Load balancers in front of the processes of account and of the gateway. */
  readonly accountUrl: string;
  readonly gatewayUrl: string;
  /** The Redis of the queue; missing if the queue is in PostgreSQL. */
  readonly redisUrl?: string | undefined;
}

interface ActorsOptions {
  readonly harness: Harness;
  readonly random: Random;
  readonly history: Writer<Line>;
  /** Address of a serving process; undefined while there is none. */
  readonly where: () => ServiceAddress | undefined;
  readonly stopping: AbortSignal;
}

export interface ServiceUnderTest {
  /** Its name in `todoke serve`, and of its schema. Its database and its role are named `todoke_<name>`. */
  readonly name: string;
  /** Number of processes. */
  readonly copies: number;
  load(): Promise<{
    readonly audits: { readonly specs: readonly AuditSpec[] };
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
  /** SQL that runs in its own database before its processes start; `forMs` is the duration of the run. */
  prepare?(forMs: number): string;
  /** Its clients' commands; missing if it has no clients. */
  readonly workload?: (random: Random) => Workload;
  /** Whether its processes are called although it has no workload. */
  readonly isCalled?: boolean;
  /** Callers whose steps are no commands; resolves when they have stopped. */
  actors?(options: ActorsOptions): Promise<void>;
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
  /** Called with every accepted command and its response. */
  onAccepted(command: Command, answer: string): void;
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

/** In the order in which work flows: a service stands after those whose events it consumes. */
export const services: readonly ServiceUnderTest[] = [
  account,
  gatewayBff,
  entitlement,
  orders,
  points,
  matchmaking,
  notification,
];

/** Those with these names, in the order above. Default: all. */
export const selectServices = (names: readonly string[] | undefined): readonly ServiceUnderTest[] =>
  names === undefined ? services : services.filter(({ name }) => names.includes(name));

/** "entitlement_1". Also the name of its database role. */
export const processName = (service: string, copy: number): string => `${service}_${copy}`;

export function getService(name: string): ServiceUnderTest {
  const found = services.find((service) => service.name === name);
  if (!found) throw new Error(`"${name}" is not one of ${services.map((service) => service.name).join(", ")}`);
  return found;
}
