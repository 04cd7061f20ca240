/** The declaration of a service, and the parts that its `build` gets. */
import type { Authenticate, DocsPageOptions, Env, HttpApp } from "@todoke/http";
import type { AuditSpec } from "@todoke/kernel/audit";
import type { EventBus } from "@todoke/kernel/bus";
import type { Delays } from "@todoke/kernel/claims";
import type { MigrationSet, Queryable } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { FoundEntries, Lookup, WhyQuestion } from "@todoke/kernel/why";
import type { BusRequest, Subject } from "./buses.ts";
import type { Consumes, EventHandler } from "./consumes.ts";
import type { ProcessGroup } from "./process-group.ts";
import type { Check } from "./readiness.ts";
import type { Runtime } from "./runtime.ts";
import type { ServeStaff } from "./serve-staff.ts";
import type { Need, Topics } from "./staff/index.ts";
import type { DeclaredTable } from "./tables.ts";
import type { WorkerOverrides } from "./worker-settings.ts";

export interface ServiceDefinition<Settings, Role extends string, Worker extends string, Event> {
  /** Kebab-case. Its variables begin with it: GATEWAY_BFF_PORT. Its schema has the same name, with _ for -. */
  readonly name: string;
  readonly port: number;
  readonly migrations: URL;
  /** Further schemas that it needs, with their migrations: those of a simulated broker. */
  readonly moreSchemas?: (env: Env) => Readonly<Record<string, readonly MigrationSet[]>>;
  /** Reads the settings that only this service has. An error is pushed, a sentence each, never thrown. */
  readonly settings: (env: Env, errors: string[]) => Settings;
  /**
   * Its roles besides "api", "maintenance", "relay" (if it emits) and "consumer" (if it consumes). A process has all roles
   * unless <NAME>_ROLES names some.
   */
  readonly roles?: readonly Role[];
  /** Its own workers, besides "relay" and "inbox". Each can be set apart: NOTIFICATION_SENDER_LEASE_MS. */
  readonly workers?: readonly Worker[];
  /** The subjects on which it emits events, through its outbox. Each may have a bus of its own (`busVariable`). */
  readonly emits?: readonly Subject[];
  /** The events that it consumes, through its inbox. `build` returns their handler. */
  readonly consumes?: Consumes;
  /** Its claimed tables, besides outbox and inbox. */
  readonly tables?: readonly DeclaredTable[];
  /** Rows that users wait for, besides those of its claimed tables, outbox and inbox. */
  readonly delays?: (db: Queryable) => Promise<readonly Delays[]>;
  /** Problems that need an operator, besides dead letters and late rows. */
  readonly needs?: (db: Queryable) => Promise<readonly Need[]>;
  /** Digests of what only this service has, by the topic whose pages show it (staff/changes.ts). */
  readonly changes?: (db: Queryable) => Promise<Topics>;
  /** Look-ups of an id in its own tables, for `todoke why`. The kernel's tables are looked up for every service. */
  readonly explains?: readonly Lookup[];
  /** Rules between its own tables, for `todoke audit`. The kernel's tables are audited for every service. */
  readonly audited?: AuditSpec;
  /** Rows that it deletes by age, besides those of outbox, inbox and idempotency keys. */
  readonly retention?: (settings: Settings) => readonly RetentionPolicy[];
  /** How users authenticate; by a token of the gateway by default. */
  readonly userAuth?: "session" | "token";
  /** The sources of its API reference, if it shows more than its own. */
  readonly docs?: DocsPageOptions;
  /** Where its own API document is; `/openapi.json` by default. */
  readonly openapiPath?: `/${string}`;
  /** Its host names, besides those that every service has. */
  readonly hosts?: (settings: Settings) => readonly string[];
  /** Puts the service together, and returns the handler of the events that it consumes. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a service that consumes nothing returns nothing.
  readonly build: (parts: ServiceParts<Settings, Role, Worker>) => Promise<EventHandler<Event> | void>;
}

interface ServiceParts<Settings, Role extends string, Worker extends string>
  extends Pick<Runtime, "db" | "wakeups" | "debug" | "use" | "onError" | "topicOf" | "wakeRelay"> {
  readonly settings: Settings;
  /** The settings of its own workers. */
  readonly workers: Readonly<Record<Worker, WorkerOverrides>>;
  /** Whether API documents are served. */
  readonly apiDocs: boolean;
  /** Whether it publishes to one bus only, which is in its database. */
  readonly isBusInDatabase: boolean;
  /** How long an idempotency key is kept. Keys in `db` are; a service with keys elsewhere has to see to it. */
  readonly idempotencyMs: number;
  hasRole(role: Role | "api" | "maintenance" | "consumer" | "worker"): boolean;
  /** Authenticates the caller by an API key, or by a token that was issued for this service. */
  readonly authenticate: Authenticate;
  /** Looks up an id in the database. */
  readonly findEntries: (question: WhyQuestion) => Promise<FoundEntries>;
  /**
   * Registers the routes that every service has for staff. A service whose users have sessions calls it, with its own
   * authentication; of all others they are registered with theirs.
   */
  readonly serveStaff: ServeStaff;
  /** Its events are relayed as soon as they are committed. */
  readonly outbox: Outbox;
  /** Every route declares who may call it (`requires`); /debug/ routes go to `debug`. */
  readonly app: HttpApp;
  /** While the check fails, /readyz responds with 503. The database is always checked. */
  addReadinessCheck(name: string, check: Check): void;
}

export interface ServiceDependencies {
  /** Connects to a bus. `name` identifies the connection at the message broker. */
  openBus(name: string, bus: BusRequest): Promise<EventBus>;
  /** Set if the command has several processes. */
  readonly group?: ProcessGroup | undefined;
}
