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
  bearerAuthentication,
  buildHttpApp,
  type Env,
  type HttpApp,
  httpMigrations,
  limitKeys,
  logError,
  openApiKeys,
  ourHosts,
  tokenVerifier,
} from "@todoke/http";
import type { Delays } from "@todoke/kernel/claims";
import { type AppliedMigration, directUrlOf, migrate, migrationUrl, openDb, type Queryable } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { openOutbox, outboxTable } from "@todoke/kernel/outbox";
import { findEntries, type WhyQuestion } from "@todoke/kernel/why";
import { shareWakeups } from "@todoke/kernel/worker";
import { startLiveAudits } from "./audits.ts";
import { openPublisher } from "./buses.ts";
import { type CommonSettings, readCommonSettings, readDatabaseUrl } from "./common-settings.ts";
import { startConsumer } from "./consumes.ts";
import { readAllDelays, readDeclarations, startDeclared } from "./declared.ts";
import type { ServiceDefinition, ServiceDependencies } from "./definition.ts";
import { type Health, serveHealth } from "./health.ts";
import { type Listeners, startListeners } from "./listeners.ts";
import { mergeMetrics } from "./merge-metrics.ts";
import { watchOutages } from "./outages.ts";
import manifest from "./package.json" with { type: "json" };
import { watchProcess } from "./process-gauges.ts";
import { findSilent, groupReadiness, type ProcessGroup } from "./process-group.ts";
import { prometheusText } from "./prometheus.ts";
import { type Check, Readiness } from "./readiness.ts";
import type { Runtime } from "./runtime.ts";
import { createServeStaff, startStaffWork } from "./serve-staff.ts";
import { changesRoute } from "./staff/index.ts";
import { startTelemetry, type Telemetry } from "./telemetry.ts";
import { openWatchedBuses } from "./watched-buses.ts";
import { whyPartRoute } from "./why/part-route.ts";
import type { WorkerOverrides } from "./worker-settings.ts";

/** All packages have the same version. */
const { version } = manifest;

export function service<
  Settings,
  const Role extends string = never,
  const Worker extends string = never,
  Event = never,
>(definition: ServiceDefinition<Settings, Role, Worker, Event>) {
  const { name, port, migrations, emits, consumes } = definition;
  const schema = name.replaceAll("-", "_");
  const sets = [kernelMigrations, httpMigrations, { name, dir: migrations }];
  const declared = readDeclarations(definition);
  const { subjects, deadLetters, lookups, auditSpecs } = declared;

  function read(env: Env): { common: CommonSettings; settings: Settings; errors: string[] } {
    const errors: string[] = [];
    const { roles, workers } = declared;
    const events = { emits: emits !== undefined, consumes: consumes !== undefined };
    const common = readCommonSettings({ name, port, roles, workers, ...events }, env, errors);
    return { common, settings: definition.settings(env, errors), errors };
  }

  function readOrThrow(env: Env): { common: CommonSettings; settings: Settings } {
    const { errors, ...config } = read(env);
    if (errors.length > 0) throw new Error(errors.join("\n"));
    return config;
  }

  return {
    /** Every error in its settings, a sentence each. */
    configErrors: (env: Env): readonly string[] => read(env).errors,

    /** Its dead letters, for callers that have the database and no running copy of the service. */
    dead: { schema, tables: deadLetters },

    /** Rows that users wait for. Like `dead`, for callers that have the database only. */
    delays: (db: Queryable): Promise<readonly Delays[]> => readAllDelays(definition, db),

    /** How an id is looked up in its tables, for callers that have the database only. */
    why: lookups,

    /** Its rules for `todoke audit`, for callers that have the database only. */
    audits: {
      specs: auditSpecs,
      /** How long its published events are kept. */
      keptMs: (env: Env): number => read(env).common.retention.publishedMs,
    },

    /** The subjects that it emits and consumes. */
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
        ...(definition.openapiPath && { openapiPath: definition.openapiPath }),
        bounds: { connectionsMax: common.connectionsMax },
      });
      const watch = (url: string, probe: () => Promise<unknown>) =>
        watchOutages({ url, probe, log: app.log, onError: onAnyError });
      const { onError } = started.use(watch(common.databaseUrl, () => db.query("select 1")));
      const wakeups = started.use(shareWakeups({ url: common.databaseUrl, onError }));
      if (directUrlOf(common.databaseUrl) === undefined) app.log.warn(noWakeups);
      const apiKeys = openApiKeys({ db, fixed: common.apiKeys });
      started.defer(wakeups.on(`${schema}.api_keys`, () => apiKeys.clearCache()));
      const { buses, degraded } = await openWatchedBuses(subjects, env, {
        open: (request) => outside.openBus(name, { ...request, onInfo: (message) => app.log.info(message) }),
        watch,
        use: (part) => started.use(part),
      });
      const stopping = new AbortController();
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
      startDeclared(definition, runtime, { common, settings });
      startStaffWork(runtime, {
        deadLetters,
        collect: common.telemetry.enabled ? () => telemetry.collect() : undefined,
      });
      startLiveAudits(runtime, { name, schema, common, specs: auditSpecs, log: app.log });
      const authenticate = limitKeys(
        bearerAuthentication({
          verifyApiKey: apiKeys.find,
          verifyToken: tokenVerifier({ audience: name, keys: common.tokenKeys }),
        }),
        { perSecond: common.keyPerSecond },
      );
      const reads = openDb({ ...staffPool, url: common.databaseUrl, schema, applicationName: `${name} staff` });
      started.defer(() => reads.end());
      const find = (question: WhyQuestion) => findEntries(reads, lookups, question);
      const serveStaff = createServeStaff(runtime, {
        app,
        reads,
        deadLetters,
        health,
        delays: (on) => readAllDelays(definition, on),
        needs: definition.needs,
        find,
        changes: definition.changes,
      });
      // The gateway puts the parts of all services together.
      if (runtime.hasRole("api") && definition.userAuth !== "session") {
        whyPartRoute(app, { authenticate, find });
        const { changes } = serveStaff({ authenticate, prefix: "/v1/admin", hide: false });
        changesRoute(app, authenticate, changes);
      }
      const handler = await definition.build({
        ...runtime,
        settings,
        workers: common.workers as Record<Worker, WorkerOverrides>,
        apiDocs: common.apiDocs,
        isBusInDatabase: runtime.publisher !== undefined,
        idempotencyMs,
        authenticate,
        findEntries: find,
        serveStaff,
        outbox: openOutbox({ wakeups, topic: relayTopic }),
        app,
        addReadinessCheck: (what, check) => {
          checks[what] = check;
        },
      });
      if (consumes && runtime.hasRole(declared.consumerRole)) {
        if (!handler) throw new Error(`${name} consumes events, but its build returns no handler`);
        startConsumer(runtime, handler);
      }

      const metrics = async () => prometheusText(await collectMetrics(telemetry, group), telemetry.resource);
      const serving = await startListeners({
        app,
        debugRoutes,
        docs: definition.docs,
        ops: { ...appOptions, health, metrics },
        settings: common,
        stopping: stopping.signal,
      });
      started.defer(async () => {
        stopping.abort();
        await serving.closed;
      });
      return running(started.move(), serving);
    },
  };
}

/**
 * Connections are opened when staff looks at the service. However many do, commands keep theirs. A statement ends before the call of
 * the gateway, which lasts 2 s: calls that time out open its circuit breaker, for players too.
 */
const staffPool = { poolMax: 2, statementTimeoutMs: 1_500 };

const noWakeups =
  "the database is PgBouncer and has no direct URL (DATABASE_DIRECT_URL), so other processes do not wake the workers of this one: they poll";
async function collectMetrics(telemetry: Telemetry, group: ProcessGroup | undefined): Promise<readonly MetricData[]> {
  if (!group) return await telemetry.collect();
  const answers = await group.ask("metrics");
  return mergeMetrics(answers.flatMap(({ answer }) => (answer ? [answer] : [])));
}

function running(started: AsyncDisposableStack, { url, opsUrl }: Listeners) {
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
