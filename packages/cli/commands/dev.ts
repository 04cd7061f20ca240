/**
 * `todoke dev`: everything on a machine with nothing but Node. What it has stored it finds again, however it ended; what
 * it has started it stops, in the reverse order; and nothing is started before all that can be known to fail is checked.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, isPortFree, startEngine } from "@todoke/engines";
import { type Loaded, refuseMisconfigured } from "../choice.ts";
import type { Command } from "../command.ts";
import { dataFolder, type HeldFolder, type Holder, holdFolder } from "../data-folder.ts";
import { type DemoProvider, startDemoProvider } from "../demo-provider.ts";
import { demoIssuer, devEnv } from "../dev-env.ts";
import { keptSecrets, newSecrets } from "../dev-secrets.ts";
import { CommandFailed, reasonOf } from "../faults.ts";
import { migrateAll } from "../migrations.ts";
import { plural, say, styled, table } from "../output.ts";
import { refuseBusy } from "../ports.ts";
import { type AtWork, startServices } from "../run-services.ts";
import type { Env } from "../services.ts";
import { type Port, portsOf, postgresPort, providerPort, withoutSecrets } from "../settings.ts";
import { hearStop, type Stop } from "../stop.ts";

export const dev: Command = {
  name: "dev",
  summary: "run everything on this machine, with a database of its own",
  usage: "todoke dev",
  details: `
Starts PostgreSQL (it comes with \`npm ci\`) and an OpenID provider with two players and an admin, brings the schemas
up to date and runs all services in this process. Data and keys are kept in .todoke/ and survive a restart, also after
a crash or a kill -9.

  DATABASE_URL             use this PostgreSQL server instead of an own one; then OIDC_ISSUER must be set
  EVENT_BUS_URL            nats://…, amqp://… or postgres://…; without it the bus is in the database
  REDIS_URL                redis://…; without it sessions, limits and tickets are in the database
  OIDC_ISSUER              log in there instead; with OIDC_CLIENT_ID and OIDC_CLIENT_SECRET
  POSTGRES_PORT            where the own PostgreSQL listens (8090)
  OIDC_PROVIDER_PORT       where the own OpenID provider listens (8089)
  <SERVICE>_PORT           where a service listens (\`todoke help\` lists the usual ports)

Ctrl-C or SIGTERM drains and stops; a second one ends it at once.`,
  switches: {},
  takesNames: false,
  async run({ env, services }) {
    const stop = await hearStop();
    const port = postgresPort(env);
    const issuer = demoIssuer(env);
    const planned = { databaseUrl: env.DATABASE_URL || toBeStarted, issuer, services, secrets: await newSecrets() };
    const loaded = await refuseMisconfigured(services, devEnv(env, planned));
    await using folder = await holdFolder(port.number);
    const ports = services.flatMap((entry) => portsOf(entry, env));
    await refuseBusy(issuer ? [...ports, providerPort(env)] : ports);
    await using database = env.DATABASE_URL ? notOurs(env.DATABASE_URL) : await startDatabase(port, folder);
    const made = { ...planned, databaseUrl: database.url, secrets: await keptSecrets() };
    await using provider = issuer ? await startDemoProvider(devEnv(env, made)) : undefined;
    await folder.announce({ databaseUrl: database.url, ...(issuer && { issuer }) });
    stop.throwIfAsked();
    await runAll({ loaded, stop, provider, env: devEnv(env, made) });
    return 0;
  },
};

/** Stands for the database that does not run yet while settings are checked. */
const toBeStarted = "postgres://127.0.0.1/postgres";

interface Ready {
  readonly loaded: readonly Loaded[];
  readonly stop: Stop;
  readonly provider: DemoProvider | undefined;
  readonly env: Env;
}

async function runAll({ loaded, stop, provider, env }: Ready): Promise<void> {
  const ran = (await migrateAll(loaded, env, { dryRun: false })).flatMap((service) => service.ran);
  if (ran.length > 0) say(`Schemas: ${plural(ran.length, "migration")} ran`);
  await using work = await startServices(loaded, env, stop);
  welcome(work, env, provider);
  await work.untilStop();
}

type Database = Pick<Engine, "url"> & AsyncDisposable;

const notOurs = (url: string): Database => ({ url, async [Symbol.asyncDispose]() {} });

async function startDatabase(port: Port, folder: HeldFolder): Promise<Database> {
  if (folder.killed) await waitForDatabaseOf(folder.killed);
  await refuseBusy([port]);
  say("Starting PostgreSQL …");
  try {
    const engine = await startEngine("postgres", { dir: `${dataFolder}/postgres`, port: port.number });
    say(`PostgreSQL ${engine.version} (${engine.origin}), data in ${dataFolder}/postgres`);
    return engine;
  } catch (error) {
    throw new CommandFailed(`PostgreSQL did not start: ${reasonOf(error)}`, { cause: error });
  }
}

/** PostgreSQL's own grace for its last checkpoint; it notices the death of its owner at once. */
const killedStopsMs = 30_000;

/** After a kill -9 of `todoke dev` its database stops in good order; a quick restart is quicker than that. */
async function waitForDatabaseOf({ postgresPort }: Holder): Promise<void> {
  if (await isPortFree(postgresPort)) return;
  say("The run before this one was killed; waiting for its database to stop …");
  const deadline = performance.now() + killedStopsMs;
  while (!(await isPortFree(postgresPort)) && performance.now() < deadline) await sleep(50);
}

function welcome(work: AtWork, env: Env, provider: DemoProvider | undefined): void {
  const services = work.all.map(({ entry, running }) => ({ entry, url: entry.publicUrl?.(env) ?? running.url }));
  const rows = services.map(({ entry, url }) => [entry.name, url, entry.summary]);
  if (provider) rows.push(["provider", provider.issuer, "where demo users log in, for trying out only"]);
  if (env.DATABASE_URL) rows.push(["database", withoutSecrets(env.DATABASE_URL), "PostgreSQL"]);
  if (env.EVENT_BUS_URL) rows.push(["bus", withoutSecrets(env.EVENT_BUS_URL), "events"]);
  say();
  say(table(rows));
  const where = env.GATEWAY_BFF_ORIGIN ? ` at ${env.GATEWAY_BFF_ORIGIN}/login` : "";
  if (provider) say(`\nLog in${where} as ${provider.logIns.join(", ")}.`);
  const examples = services.flatMap(({ entry, url }) => entry.example?.(url) ?? []);
  if (examples.length > 0) say(`\nTry it:\n\n${examples.join("\n\n")}`);
  say(`\n${styled("green", "✓")} Ready. Ctrl-C stops.`);
}
