/**
 * Everything that services have in common, from reading their settings to stopping: a schema of their own, a bus, an HTTP
 * API with health checks, an ops listener, and the events that they emit and consume. A service declares what it has, and
 * puts its own parts together in `build`; `todoke` runs what `service` returns.
 *
 * A stop goes backwards through everything that was started: no new requests, requests in flight get their response,
 * workers finish or release their jobs, and only then connections close.
 */
import type { MetricData } from "@opentelemetry/sdk-metrics";
import {
  type Authenticate,
  bearerAuthentication,
  buildHttpApp,
  type DocsPageOptions,
  docsPage,
  type Env,
  type HttpApp,
  httpMigrations,
  logError,
  openApiKeys,
  ourHosts,
  publicRoute,
  tokenVerifier,
} from "@todoke/http";
import type { EventBus } from "@todoke/kernel/bus";
import { type Delays, readDelays } from "@todoke/kernel/claims";
import {
  type AppliedMigration,
  directUrlOf,
  type MigrationSet,
  migrate,
  migrationUrl,
  openDb,
  type Queryable,
} from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { inboxDeadLetters, readInboxDelays } from "@todoke/kernel/inbox";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { type Outbox, openOutbox, outboxDeadLetters, outboxTable } from "@todoke/kernel/outbox";
import { type RetentionPolicy, retentionPolicies, startRetention } from "@todoke/kernel/retention";
import { type FoundEntries, findEntries, kernelLookups, type Lookup, type WhyQuestion } from "@todoke/kernel/why";
import { shareWakeups } from "@todoke/kernel/worker";
import {
  type BusRequest,
  type OpenedBus,
  openBuses,
  openPublisher,
  type ServiceSubjects,
  type Subject,
} from "./buses.ts";
import { type CommonSettings, readCommonSettings, readDatabaseUrl } from "./common-settings.ts";
import { type Consumes, type EventHandler, inboxRetention, startConsumer, watchInbox } from "./consumes.ts";
import { discardRoutes } from "./discard-routes.ts";
import { outboxRetention, outboxWork, startOutbox } from "./emits.ts";
import { type Health, serveHealth } from "./health.ts";
import { serve } from "./listen.ts";
import { mergeMetrics } from "./merge-metrics.ts";
import { buildOpsApp, closedDebug, opsPortOf } from "./ops.ts";
import { type OutageWatch, watchOutages } from "./outages.ts";
import manifest from "./package.json" with { type: "json" };
import { watchProcess } from "./process-gauges.ts";
import { findSilent, groupReadiness, type ProcessGroup } from "./process-group.ts";
import { prometheusText } from "./prometheus.ts";
import { type Check, Readiness } from "./readiness.ts";
import type { Runtime } from "./runtime.ts";
import {
  batchesTable,
  finishedBatches,
  type Need,
  oldSamples,
  overviewReader,
  type StaffRouteDeps,
  staffRoutes,
  startBatchWorker,
  startSampler,
} from "./staff/index.ts";
import { type DeclaredTable, startTable } from "./tables.ts";
import { startTelemetry, type Telemetry } from "./telemetry.ts";
import { whyPartRoute } from "./why/part-route.ts";
import { workRoutes } from "./work-routes.ts";
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
  /** What users wait for, besides the rows of its claimed tables, outbox and inbox. */
  readonly delays?: (db: Queryable) => Promise<readonly Delays[]>;
  /** What its own tables know about an id, for `todoke why`. The kernel's tables are looked up for every service. */
  readonly explains?: readonly Lookup[];

  /** What needs a person, besides dead letters and what users wait for. */
  readonly needs?: (db: Queryable) => Promise<readonly Need[]>;
  /** What it deletes by age, besides rows of outbox, inbox and idempotency keys. */
  readonly retention?: (settings: Settings) => readonly RetentionPolicy[];
  /** How users authenticate; by a token of the gateway by default. */
  readonly userAuth?: "session" | "token";
  /** The sources of its API reference, if it shows more than its own. */
  readonly docs?: (settings: Settings) => DocsPageOptions;
  /** Its host names, besides those that every service has. */
  readonly hosts?: (settings: Settings) => readonly string[];
  /** Puts the service together, and returns the handler of the events that it consumes. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a service that consumes nothing returns nothing.
  readonly build: (parts: ServiceParts<Settings, Role, Worker>) => Promise<EventHandler<Event> | void>;
}

/** All packages have the same version. */
const { version } = manifest;

interface ServiceParts<Settings, Role extends string, Worker extends string>
  extends Pick<Runtime, "db" | "wakeups" | "debug" | "use" | "onError" | "topicOf" | "wakeRelay"> {
  readonly settings: Settings;
  /** The settings of its own workers. */
  readonly workers: Readonly<Record<Worker, WorkerOverrides>>;
  /** Whether API documents are served. */
  readonly apiDocs: boolean;
  /** How long an idempotency key is kept. Keys in `db` are; a service with keys elsewhere has to see to it. */
  readonly idempotencyMs: number;
  hasRole(role: Role | "api" | "maintenance"): boolean;
  /** Authenticates the caller by an API key, or by a token that was issued for this service. */
  readonly authenticate: Authenticate;
  /** What the database knows about an id. */
  readonly findEntries: (question: WhyQuestion) => Promise<FoundEntries>;
  /** Its events are relayed as soon as they are committed. */
  readonly outbox: Outbox;
  /** Every route declares who may call it (`requires`); /debug/ routes go to `debug`. */
  readonly app: HttpApp;
  /**
   * Registers the routes that every service has for staff. A service whose users have sessions calls it, with its own
   * authentication; of all others they are registered with theirs.
   */
  readonly serveStaff: ServeStaff;
  /** While the check fails, /readyz responds with 503. The database is always checked. */
  addReadinessCheck(name: string, check: Check): void;
}

export type ServeStaff = (options: Pick<StaffRouteDeps, "authenticate" | "prefix" | "hide">) => StaffReads;

/** What the routes for staff read. */
export interface StaffReads extends Pick<StaffRouteDeps, "service" | "reads" | "deadLetters"> {
  readonly overview: ReturnType<typeof overviewReader>;
}

// An open console has one request in flight per page.
const staffReads = { poolMax: 2, statementTimeoutMs: 2_000 };

export interface ServiceDependencies {
  /** Connects to a bus. `name` identifies the connection at the message broker. */
  openBus(name: string, bus: BusRequest): Promise<EventBus>;
  /** Set if the command has several processes. */
  readonly group?: ProcessGroup | undefined;
}

export function service<
  Settings,
  const Role extends string = never,
  const Worker extends string = never,
  Event = never,
>(definition: ServiceDefinition<Settings, Role, Worker, Event>) {
  const { name, port, migrations, emits, consumes, tables = [] } = definition;
  const subjects: ServiceSubjects = { emits: emits ?? [], consumes: consumes?.subjects ?? [] };
  const schema = name.replaceAll("-", "_");
  const sets = [kernelMigrations, httpMigrations, { name, dir: migrations }];
  const consumerRole = consumes?.role ?? "consumer";
  const roles: readonly string[] = [
    "api",
    "maintenance",
    ...(emits ? ["relay"] : []),
    ...(consumes ? [consumerRole] : []),
    ...(definition.roles ?? []),
  ].sort();
  const workers = [...(emits ? ["relay"] : []), ...(consumes ? ["inbox"] : []), ...(definition.workers ?? [])];
  const deadLetters: readonly DeadLetters[] = [
    ...(emits ? [outboxDeadLetters] : []),
    ...tables.flatMap((table) => table.deadLetters ?? []),
    ...(consumes ? [inboxDeadLetters(name)] : []),
  ];

  const lookups: readonly Lookup[] = [
    ...kernelLookups({
      emits: emits !== undefined,
      ...(consumes && { consumer: name }),
      redriven: tables.flatMap(({ table, deadLetters: its, redrivenAs }) =>
        its && redrivenAs ? [{ table: table.table, by: redrivenAs }] : [],
      ),
    }),
    ...(definition.explains ?? []),
  ];

  async function readAllDelays(db: Queryable): Promise<readonly Delays[]> {
    const claimed = [...(emits ? [outboxWork] : []), ...tables];
    const found: Delays[] = [];
    // One after the other: it is a diagnosis, and must not load the database.
    for (const { table } of claimed) found.push(await readDelays(db, table));
    if (consumes) found.push(...(await readInboxDelays(db, name)));
    return [...found, ...((await definition.delays?.(db)) ?? [])];
  }

  function read(env: Env): { common: CommonSettings; settings: Settings; errors: string[] } {
    const errors: string[] = [];
    const declared = { emits: emits !== undefined, consumes: consumes !== undefined };
    const common = readCommonSettings({ name, port, roles, workers, ...declared }, env, errors);
    return { common, settings: definition.settings(env, errors), errors };
  }

  function readOrThrow(env: Env): { common: CommonSettings; settings: Settings } {
    const { errors, ...config } = read(env);
    if (errors.length > 0) throw new Error(errors.join("\n"));
    return config;
  }

  /** Starts what the declarations ask for, except the consumer: its handler comes from `build`. */
  function startDeclared(runtime: Runtime, { common, settings }: { common: CommonSettings; settings: Settings }): void {
    const policies = [
      ...(definition.retention?.(settings) ?? []),
      ...(emits ? outboxRetention(common.retention) : []),
      ...(consumes ? inboxRetention(common.retention) : []),
      retentionPolicies.idempotencyKeys(),
      finishedBatches,
      oldSamples,
    ];
    if (runtime.hasRole("maintenance")) runtime.use(startRetention(runtime.db, policies, { onError: runtime.onError }));
    if (emits) startOutbox(runtime);
    if (consumes) watchInbox(runtime);
    for (const table of tables) startTable(table, runtime);
    if (deadLetters.length > 0)
      runtime.debug((app) =>
        discardRoutes(app, {
          db: runtime.db,
          deadLetters,
          onDiscarded: (table) => runtime.wakeups.signal(runtime.topicOf(table)),
        }),
      );
    const { db, wakeups, onError, topicOf } = runtime;
    if (runtime.hasRole("maintenance") && deadLetters.length > 0)
      runtime.use(
        startBatchWorker({
          db,
          deadLetters,
          wakeups,
          topic: topicOf(batchesTable),
          onChanged: (table) => wakeups.signal(topicOf(table)),
          onError,
        }),
      );
    const work = [...(emits ? [outboxWork] : []), ...tables];
    if (work.length > 0) runtime.debug((app) => workRoutes(app, { db: runtime.db, tables: work }));
  }

  return {
    /** Every error in its settings, a sentence each. */
    configErrors: (env: Env): readonly string[] => read(env).errors,

    /** Its dead letters, for callers that have the database and no running copy of the service. */
    dead: { schema, tables: deadLetters },

    /** What users wait for. Like `dead`, for callers that have the database only. */
    delays: readAllDelays,

    /** How an id is looked up in its tables, for callers that have the database only. */
    why: lookups,

    /** What it emits and consumes. */
    events: subjects,

    /** Brings its schema up to date and returns what was run; with `dryRun`, what would be run. */
    async migrate(env: Env, { dryRun }: { readonly dryRun: boolean }): Promise<readonly AppliedMigration[]> {
      // Only the setting of the database is needed.
      const errors: string[] = [];
      const url = readDatabaseUrl(name, env, errors);
      if (errors.length > 0) throw new Error(errors.join("\n"));
      const db = openDb({ url: migrationUrl(url, { dryRun }), poolMax: 1 });
      const ran: AppliedMigration[] = [];
      try {
        for (const [each, its] of Object.entries({ [schema]: sets, ...definition.moreSchemas?.(env) }))
          ran.push(...(await migrate(db, { schema: each, sets: its, dryRun })));
        return ran;
      } finally {
        await db.end();
      }
    },

    /** Resolves when it serves. */
    async start(env: Env, outside: ServiceDependencies) {
      const { common, settings } = readOrThrow(env);
      const { group } = outside;
      await using started = new AsyncDisposableStack();
      // The app and its log exist before the first error can occur.
      const onAnyError = (error: unknown) => logError(app.log, error);
      const telemetry = startTelemetry(common.telemetry, onAnyError);
      started.defer(() => telemetry.flush());
      const { idempotencyMs } = common.retention;
      const db = openDb({ url: common.databaseUrl, schema, applicationName: name, idempotencyMs });
      started.defer(() => db.end());
      const appOptions = {
        title: `Todoke ${name}`,
        version,
        service: name,
        log: {
          ...common.log,
          fields: { service: name, version, ...(group && { process: group.number }) },
          onLine: telemetry.exportLine,
        },
        telemetry: common.telemetry.enabled,
        isOurHost: ourHosts([...common.hostNames, ...(definition.hosts?.(settings) ?? [])]),
        openapi: common.apiDocs,
      };
      const app = await buildHttpApp({
        ...appOptions,
        rules: true,
        userAuth: definition.userAuth ?? "token",
        bounds: { connectionsMax: common.connectionsMax },
      });
      const watch = (url: string, probe: () => Promise<unknown>) =>
        watchOutages({ url, probe, log: app.log, onError: onAnyError });
      const { onError } = started.use(watch(common.databaseUrl, () => db.query("select 1")));
      const wakeups = started.use(shareWakeups({ url: common.databaseUrl, onError }));
      if (directUrlOf(common.databaseUrl) === undefined) app.log.warn(noWakeups);
      const apiKeys = openApiKeys({ db, fixed: common.apiKeys });
      started.defer(wakeups.on(`${schema}.api_keys`, () => apiKeys.clearCache()));
      const outages = new Map<string, OutageWatch>();
      const openBus = async (request: Pick<BusRequest, "url" | "emits">): Promise<OpenedBus> => {
        const opening = Promise.withResolvers<EventBus>();
        const outage = watch(request.url, async () => (await opening.promise).check());
        const onInfo = (message: string) => app.log.info(message);
        try {
          const bus = started.use(await outside.openBus(name, { ...request, onError: outage.onError, onInfo }));
          opening.resolve(bus);
          outages.set(request.url, outage);
          return { bus, onError: outage.onError };
        } finally {
          started.use(outage); // Ends before the bus, which is unavailable once it is closed.
        }
      };
      const buses = await openBuses(subjects, env, openBus);
      const stopping = new AbortController();
      // Without a bus commands still succeed, and their events wait in the outbox.
      const busName = ({ emits, consumes }: ServiceSubjects) =>
        buses.length === 1 ? "bus" : `bus of ${[...emits, ...consumes].join(", ")}`;
      const degraded = () => buses.filter(({ url }) => outages.get(url)?.isDown).map(busName);
      const checks: Record<string, Check> = { database: () => db.query("select 1") };
      const readiness = new Readiness({ checks, stopping: stopping.signal, log: app.log, degraded });
      started.defer(() => readiness[Symbol.dispose]());
      started.use(watchProcess({ service: name, db, loopDelayMs: () => readiness.loopDelayMs }));
      group?.onQuestion("readiness", () => readiness.report(), name);
      group?.onQuestion("metrics", () => telemetry.collect());
      const health: Health = group
        ? {
            report: () => groupReadiness(group, name),
            silentProcesses: async () => findSilent(await group.ask("liveness")),
          }
        : readiness;
      serveHealth(app, health);

      const debugRoutes: ((app: HttpApp) => void)[] = [];
      const topicOf = (table: string) => `${schema}.${table}`;
      const relayTopic = topicOf(outboxTable);
      const runtime: Runtime = {
        name,
        db,
        buses,
        publisher: await openPublisher(buses, db).catch((error) => void onError(error)),
        wakeups,
        workers: common.workers,
        hasRole: (role) => common.roles.has(role),
        debug: (routes) => debugRoutes.push(routes),
        use: (part) => started.use(part),
        onError,
        topicOf,
        wakeRelay: () => wakeups.signal(relayTopic),
      };
      startDeclared(runtime, { common, settings });
      if (common.telemetry.enabled)
        started.use(
          startSampler({
            service: name,
            db,
            deadLetters,
            hasGauges: runtime.hasRole("maintenance"),
            collect: () => telemetry.collect(),
            onError,
          }),
        );
      const authenticate = bearerAuthentication({
        verifyApiKey: apiKeys.find,
        verifyToken: tokenVerifier({ audience: name, keys: common.tokenKeys }),
      });
      const serveStaff: ServeStaff = (options) => {
        const reads = openDb({ url: common.databaseUrl, schema, applicationName: `${name} staff`, ...staffReads });
        started.defer(() => reads.end());
        const wake = (table: string) => wakeups.signal(topicOf(table));
        const wakeBatches = () => wake(batchesTable);
        const { needs } = definition;
        const overview = overviewReader({ service: name, reads, deadLetters, health, delays: readAllDelays, needs });
        staffRoutes({ ...options, app, service: name, db, reads, deadLetters, onChanged: wake, wakeBatches }, overview);
        return { service: name, reads, deadLetters, overview };
      };
      const whyDb = openDb({ ...whyPool, url: common.databaseUrl, schema, applicationName: `${name} why` });
      started.defer(() => whyDb.end());
      const find = (question: WhyQuestion) => findEntries(whyDb, lookups, question);
      // The gateway puts the parts of all services together.
      if (runtime.hasRole("api") && definition.userAuth !== "session") whyPartRoute(app, { authenticate, find });
      const handler = await definition.build({
        ...runtime,
        settings,
        workers: common.workers as Record<Worker, WorkerOverrides>,
        apiDocs: common.apiDocs,
        idempotencyMs,
        authenticate,
        serveStaff,
        findEntries: find,
        outbox: openOutbox({ wakeups, topic: relayTopic }),
        app,
        addReadinessCheck: (what, check) => {
          checks[what] = check;
        },
      });
      if (definition.userAuth !== "session" && runtime.hasRole("api"))
        serveStaff({ authenticate, prefix: "/v1/admin", hide: false });
      if (consumes && runtime.hasRole(consumerRole)) {
        if (!handler) throw new Error(`${name} consumes events, but its build returns no handler`);
        startConsumer(runtime, handler);
      }

      const debug = (on: HttpApp) => debugRoutes.forEach((routes) => void routes(on));
      if (common.isDev && common.isDebugOpen(common.host)) await servePublicly(app, debug);
      if (common.apiDocs) await docsPage(app, definition.docs?.(settings));
      const { opsHost, isDebugOpen } = common;
      const metrics = async () => prometheusText(await collectMetrics(telemetry, group), telemetry.resource);
      const ops = await buildOpsApp({
        ...appOptions,
        health,
        metrics,
        debug: isDebugOpen(opsHost) ? debug : closedDebug(name),
      });
      const serving = await serve(app, { host: common.host, port: common.port, stopping: stopping.signal });
      const opsServing = await serve(ops, { host: opsHost, port: opsPortOf(common.port), stopping: stopping.signal });
      started.defer(async () => {
        stopping.abort();
        await Promise.all([serving.closed, opsServing.closed]);
      });
      return running(started.move(), serving.url, opsServing.url);
    },
  };
}

/** Connections are opened when an operator asks. However many ask at once, commands keep theirs. */
const whyPool = { poolMax: 2, statementTimeoutMs: 2_000 };

const noWakeups =
  "the database is PgBouncer and has no direct URL (DATABASE_DIRECT_URL), so other processes do not wake the workers of this one: they poll";
async function collectMetrics(telemetry: Telemetry, group: ProcessGroup | undefined): Promise<readonly MetricData[]> {
  if (!group) return await telemetry.collect();
  const answers = await group.ask("metrics");
  return mergeMetrics(answers.flatMap(({ answer }) => (answer ? [answer] : [])));
}

/** Serves the routes of the ops listener on the service's own port too, as `todoke dev` does. */
async function servePublicly(app: HttpApp, routes: (app: HttpApp) => void): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook("onRoute", (route) => {
      route.config = { ...route.config, ...publicRoute.config };
    });
    routes(scope.withTypeProvider());
  });
}

function running(started: AsyncDisposableStack, url: string, opsUrl: string) {
  const stopped = Promise.withResolvers<void>();
  return {
    url,
    opsUrl,
    stopped: stopped.promise,
    async [Symbol.asyncDispose](): Promise<void> {
      await started.disposeAsync();
      stopped.resolve();
    },
  };
}
