/**
 * What all services have in common, from their settings to their end: a schema of their own, a bus, an HTTP face with
 * health, and an ops listener. A service says what is particular to it in `build`; `todoke` runs what `service` returns.
 *
 * A stop goes backwards through all that was started: no new requests, those in flight are answered, workers drain and
 * give back what they hold, and only then connections close.
 */
import {
  type ApiKey,
  type Authenticate,
  bearerAuthentication,
  buildHttpApp,
  type DocsPageOptions,
  docsPage,
  type Env,
  everybody,
  type HttpApp,
  hostNameIn,
  httpMigrations,
  type LogOptions,
  logError,
  openApiKeys,
  ourHosts,
  readAllowedHosts,
  readApiKeys,
  readVerifyingKeys,
  tokenVerifier,
  type VerifyingKey,
} from "@todoke/http";
import type { BusLog, EventBus } from "@todoke/kernel/bus";
import { type Applied, type Db, migrate, openDb } from "@todoke/kernel/db";
import type { DeadTable } from "@todoke/kernel/dead";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { openWakeups, type Wakeups } from "@todoke/kernel/worker";
import { serveHealth } from "./health.ts";
import { serve } from "./listen.ts";
import { buildOpsApp, opsPortOf } from "./ops.ts";
import { watchProcess } from "./process-gauges.ts";
import { type Check, Readiness } from "./readiness.ts";
import { variableOf, wholeNumbers } from "./settings.ts";
import { readTelemetrySettings, startTelemetry, type TelemetrySettings } from "./telemetry.ts";
import { readWorkerSettings, type WorkerChoices } from "./worker-settings.ts";

export interface ServiceDefinition<Settings, Role extends string> {
  /** Kebab-case; its variables begin with it: GATEWAY_BFF_PORT. Its schema is named after it, with _ for -. */
  readonly name: string;
  readonly port: number;
  readonly migrations: URL;
  /** What a process of it can do. Each does all of it, unless its variable names some: ENTITLEMENT_ROLES=relay,upkeep. */
  readonly roles: readonly Role[];
  /** What only this service takes from the environment. A fault is pushed, a sentence each, never thrown. */
  readonly settings: (env: Env, faults: string[]) => Settings;
  /** Its tables with rows that may be given up, for `todoke dead`. */
  readonly dead?: readonly DeadTable[];
  /** How users prove who they are here: by a token of the gateway, unless said otherwise. */
  readonly usersBy?: "session" | "token";
  /** What its API reference shows, when that is more than its own. */
  readonly docs?: (settings: Settings) => DocsPageOptions;
  /** Host names that it is called by, besides those that every service has. */
  readonly hosts?: (settings: Settings) => readonly string[];
  /** Puts the service together. Whatever it starts goes through `use`, and is stopped in the opposite order. */
  readonly build: (parts: ServiceParts<Settings, Role>) => Promise<void>;
}

export interface ServiceParts<Settings, Role extends string> {
  readonly settings: Settings;
  /** What the environment says of the service's workers: lease, poll, batch, attempts, backoff. */
  readonly workerSettings: WorkerChoices;
  /** Whether API documents are served. */
  readonly apiDocs: boolean;
  /** Whether this process has the role. Health, metrics and the ops listener come with any. */
  does(role: Role): boolean;
  /** Who calls, by an API key or by a token that is for this service. */
  readonly authenticate: Authenticate;
  readonly db: Db;
  readonly bus: EventBus;
  readonly wakeups: Wakeups;
  /** Each route says who may call it (`requires`); /debug/ routes go to `debug`. */
  readonly app: HttpApp;
  /** Registers /debug/ routes: on the ops listener, and under `todoke dev` on the service's own port too. */
  debug(routes: (app: HttpApp) => void): void;
  /** What the service cannot work without, besides its database: as long as it fails, /readyz says so. */
  needs(name: string, check: Check): void;
  /** For what goes wrong where nobody waits for an answer. */
  onError(error: unknown): void;
  use<T extends AsyncDisposable>(part: T): T;
  /** The topic that wakes the workers of one of the service's tables. */
  topicOf(table: string): string;
}

/** What every service takes from the environment. */
interface Common {
  readonly databaseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly connectionsMax: number;
  /** Names in the Host header that are this service's. */
  readonly hostNames: readonly string[];
  readonly apiDocs: boolean;
  readonly log: LogOptions;
  readonly telemetry: TelemetrySettings;
  readonly apiKeys: readonly ApiKey[];
  readonly tokenKeys: readonly VerifyingKey[];
  readonly isDev: boolean;
  readonly roles: ReadonlySet<string>;
  readonly workers: WorkerChoices;
}

const logLevels = ["debug", "error", "fatal", "info", "silent", "trace", "warn"] as const;

export function service<Settings, const Role extends string>(definition: ServiceDefinition<Settings, Role>) {
  const { name, migrations } = definition;
  const schema = name.replaceAll("-", "_");
  const sets = [kernelMigrations, httpMigrations, { name, dir: migrations }];

  function read(env: Env): { common: Common; settings: Settings; faults: string[] } {
    const faults: string[] = [];
    const common = readCommon(definition, env, faults);
    return { common, settings: definition.settings(env, faults), faults };
  }

  function readOrRefuse(env: Env): { common: Common; settings: Settings } {
    const { faults, ...config } = read(env);
    if (faults.length > 0) throw new Error(faults.join("\n"));
    return config;
  }

  return {
    /** All that is wrong with its settings, a sentence each. */
    configFaults: (env: Env): readonly string[] => read(env).faults,

    /** Where its dead rows are, for whoever has the database and no running copy of the service. */
    dead: { schema, tables: definition.dead ?? [] },

    /** Brings its schema up to date and says what it ran; with `dryRun`, what it would run. */
    async migrate(env: Env, { dryRun }: { readonly dryRun: boolean }): Promise<readonly Applied[]> {
      // Nothing but the database has to be known for it.
      const faults: string[] = [];
      const url = readDatabaseUrl(name, env, faults);
      if (faults.length > 0) throw new Error(faults.join("\n"));
      const db = openDb({ url, poolMax: 1 });
      try {
        return await migrate(db, { schema, sets, dryRun });
      } finally {
        await db.end();
      }
    },

    /** Resolves once it serves. */
    async start(env: Env, outside: { openBus(name: string, log: BusLog): Promise<EventBus> }) {
      const { common, settings } = readOrRefuse(env);
      await using started = new AsyncDisposableStack();
      // Told by way of the app's log, which is there before anything can be exported.
      const onError = (error: unknown) => logError(app.log, error);
      const telemetry = startTelemetry(common.telemetry, onError);
      started.defer(() => telemetry.flush());
      const db = openDb({ url: common.databaseUrl, schema, applicationName: name });
      started.defer(() => db.end());
      const isOurHost = ourHosts([...common.hostNames, ...(definition.hosts?.(settings) ?? [])]);
      const { log, apiDocs } = common;
      const telemetryOn = common.telemetry.enabled;
      const about = {
        title: `Todoke ${name}`,
        version: "0.1.0",
        log,
        telemetry: telemetryOn,
        isOurHost,
        openapi: apiDocs,
      };
      const { usersBy = "token" } = definition;
      const bounds = { connectionsMax: common.connectionsMax };
      const app = await buildHttpApp({ ...about, rules: true, usersBy, bounds });
      const wakeups = started.use(openWakeups({ url: common.databaseUrl, onError }));
      const apiKeys = openApiKeys({ db, fixed: common.apiKeys });
      started.defer(wakeups.on(`${schema}.api_keys`, () => apiKeys.forget()));
      const tokenBearer = tokenVerifier({ audience: name, keys: common.tokenKeys });
      const bus = started.use(await outside.openBus(name, { onError, onInfo: (message) => app.log.info(message) }));
      const stopping = new AbortController();
      // Not the bus: while it is away commands are still answered, and their events wait in the outbox.
      const checks: Record<string, Check> = { database: () => db.query("select 1") };
      const readiness = started.use(
        asyncDisposable(new Readiness({ checks, stopping: stopping.signal, log: app.log })),
      );
      started.use(watchProcess({ service: name, db, loopDelayMs: () => readiness.value.loopDelayMs }));
      const debugRoutes: ((app: HttpApp) => void)[] = [];
      serveHealth(app, readiness.value);

      await definition.build({
        settings,
        workerSettings: common.workers,
        apiDocs,
        does: (role) => common.roles.has(role),
        authenticate: bearerAuthentication({ keyHolder: apiKeys.find, tokenBearer }),
        db,
        bus,
        wakeups,
        app,
        debug: (routes) => debugRoutes.push(routes),
        needs: (what, check) => {
          checks[what] = check;
        },
        onError,
        use: (part) => started.use(part),
        topicOf: (table) => `${schema}.${table}`,
      });

      const debug = (on: HttpApp) => debugRoutes.forEach((routes) => void routes(on));
      if (common.isDev) await openToEverybody(app, debug);
      if (apiDocs) await docsPage(app, definition.docs?.(settings));
      const ops = await buildOpsApp({ ...about, readiness: readiness.value, metrics: telemetry.metricsText, debug });
      const { host, port } = common;
      const serving = await serve(app, { host, port, stopping: stopping.signal });
      const opsServing = await serve(ops, { port: opsPortOf(port), stopping: stopping.signal });
      started.defer(async () => {
        stopping.abort();
        await Promise.all([serving.closed, opsServing.closed]);
      });
      return running(started.move(), serving.url, opsServing.url);
    },
  };
}

/** The ops listener's routes on a service's own port, as `todoke dev` has them: there they need a rule. */
async function openToEverybody(app: HttpApp, routes: (app: HttpApp) => void): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook("onRoute", (route) => {
      route.config = { ...route.config, ...everybody.config };
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

const asyncDisposable = <T extends Disposable>(value: T) => ({
  value,
  async [Symbol.asyncDispose]() {
    value[Symbol.dispose]();
  },
});

type Named = Pick<ServiceDefinition<unknown, string>, "name" | "port" | "roles">;

function readDatabaseUrl(name: string, env: Env, faults: string[]): string {
  const databaseUrl = env[variableOf(name, "DATABASE_URL")] || env.DATABASE_URL || "";
  if (!databaseUrl) faults.push("DATABASE_URL is not set: it should name a PostgreSQL database");
  return databaseUrl;
}

function readRoles({ name, roles }: Named, env: Env, faults: string[]): ReadonlySet<string> {
  const variable = variableOf(name, "ROLES");
  const wanted = (env[variable] || roles.join()).split(",").map((role) => role.trim());
  if (!wanted.every((role) => roles.includes(role)))
    faults.push(`${variable} should name one or more of ${roles.join(", ")}, with commas between them`);
  return new Set(wanted);
}

/** TODOKE_API_DOCS=false: no /docs and no /openapi.json, for those who do not publish their API. */
function readApiDocs(env: Env, faults: string[]): boolean {
  const text = env.TODOKE_API_DOCS || "true";
  if (text !== "true" && text !== "false") faults.push('TODOKE_API_DOCS should be "true" or "false"');
  return text !== "false";
}

function readCommon(definition: Named, env: Env, faults: string[]): Common {
  const of = (what: string) => variableOf(definition.name, what);
  const databaseUrl = readDatabaseUrl(definition.name, env, faults);
  const port = Number(env[of("PORT")] || definition.port);
  if (!Number.isInteger(port) || port < 0 || port > 64_535)
    faults.push(`${of("PORT")} should be a port from 0 to 64535`);
  const level = logLevels.find((each) => each === (env.LOG_LEVEL || "info"));
  if (!level) faults.push(`LOG_LEVEL should be one of ${logLevels.join(", ")}`);
  const host = env[of("HOST")] || "127.0.0.1";
  const { keys, faults: keyFaults } = readApiKeys(env);
  faults.push(...keyFaults);
  return {
    databaseUrl,
    host,
    port,
    connectionsMax: wholeNumbers(env, faults)(of("CONNECTIONS_MAX"), 10_000, [10, 1_000_000]),
    hostNames: [host, ...hostNameIn(env[of("URL")]), ...readAllowedHosts(env, faults)],
    apiDocs: readApiDocs(env, faults),
    log: { level: level ?? "info" },
    telemetry: readTelemetrySettings(env, faults),
    apiKeys: keys,
    tokenKeys: readVerifyingKeys(env, faults),
    isDev: env.TODOKE_DEV === "true",
    roles: readRoles(definition, env, faults),
    workers: readWorkerSettings(definition.name, env, faults),
  };
}
