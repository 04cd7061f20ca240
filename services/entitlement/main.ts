/** Starts and stops the service: the only file here that opens sockets and connections. */
import { EventNotEncodable, encodeEvent } from "@todoke/contracts";
import { apiKeyAuthentication, buildOpsApp, opsPortOf, Readiness, serve, serveHealth } from "@todoke/http";
import type { EventBus } from "@todoke/kernel/bus";
import { type Applied, migrate as migrateSchema, openDb } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { openWakeups, retry } from "@todoke/kernel/worker";
import { buildApp } from "./app.ts";
import { changeEntitlement } from "./commands/change-entitlement.ts";
import { type Config, type Env, readConfig } from "./config.ts";

const schema = "entitlement";
const relayTopic = `${schema}.outbox_events`;
const ownMigrations = { name: schema, dir: new URL("./migrations/", import.meta.url) };

export function configFaults(env: Env): readonly string[] {
  const config = readConfig(env);
  return Array.isArray(config) ? config : [];
}

function configOf(env: Env): Config {
  const config = readConfig(env);
  if (Array.isArray(config)) throw new Error(config.join("\n"));
  return config as Config;
}

export async function migrate(env: Env, { dryRun }: { readonly dryRun: boolean }): Promise<readonly Applied[]> {
  const db = openDb({ url: configOf(env).databaseUrl, poolMax: 1 });
  try {
    return await migrateSchema(db, { schema, sets: [kernelMigrations, ownMigrations], dryRun });
  } finally {
    await db.end();
  }
}

/** What this build does not know yet may be known to the one that is being deployed. */
function encode({ eventType, payload }: { eventType: string; payload: string }) {
  try {
    return encodeEvent(eventType, JSON.parse(payload));
  } catch (error) {
    if (error instanceof EventNotEncodable && error.perhapsNewer) return retry(0, error.message);
    throw error;
  }
}

export async function start(env: Env, outside: { openBus(name: string): Promise<EventBus> }) {
  const config = configOf(env);
  const url = config.databaseUrl;
  await using setUp = new AsyncDisposableStack();
  const db = openDb({ url, schema, applicationName: "entitlement" });
  setUp.defer(() => db.end());
  const wakeups = setUp.use(openWakeups({ url }));
  const bus = setUp.use(await outside.openBus("entitlement"));

  const stopping = new AbortController();
  const app = await buildApp(
    {
      db,
      authenticate: apiKeyAuthentication(config.apiKeys),
      changeEntitlement: changeEntitlement(db, () => wakeups.signal(relayTopic)),
    },
    { level: config.logLevel },
  );
  const onError = (error: unknown) => app.log.error(error);
  const readiness = setUp.use(
    new Readiness({
      checks: { database: () => db.query("select 1"), bus: () => bus.check() },
      stopping: stopping.signal,
      log: app.log,
    }),
  );
  serveHealth(app, readiness);

  setUp.use(keepClean(db, [retentionOf.publishedEvents(), retentionOf.idempotencyKeys()], { onError }));
  const publishing = setUp.use(
    relay({
      db,
      bus,
      encode,
      name: "entitlement relay",
      wakeups,
      topic: relayTopic,
      onError,
    }),
  );
  publishing.start();

  const { host, port } = config;
  const ops = await buildOpsApp({ title: "entitlement ops", version: "0.1.0", readiness, metrics: () => "" });
  const serving = await serve(app, { host, port, stopping: stopping.signal });
  const opsServing = await serve(ops, { port: opsPortOf(port), stopping: stopping.signal });
  setUp.defer(async () => {
    stopping.abort();
    await Promise.all([serving.closed, opsServing.closed]);
  });

  const running = setUp.move();
  const stopped = Promise.withResolvers<void>();
  return {
    url: serving.url,
    opsUrl: opsServing.url,
    stopped: stopped.promise,
    async [Symbol.asyncDispose]() {
      await running.disposeAsync();
      stopped.resolve();
    },
  };
}
