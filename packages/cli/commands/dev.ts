/**
 * `todoke dev`: runs everything on a machine that has only Node. Its data survives any kind of exit. It checks settings and
 * ports before it starts anything, and stops what it started in reverse order.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, isPortFree, startEngine } from "@todoke/engines";
import { readServerUrl } from "@todoke/service";
import type { Command } from "../command.ts";
import { type DevProcess, dataFolder, type LockedFolder, lockDataFolder } from "../data-folder.ts";
import { demoEnv, type OpenShop, rejectForeignEngines, startDemo } from "../demo/index.ts";
import { type DemoProvider, startDemoProvider } from "../demo-provider.ts";
import { demoIssuer, devEnv } from "../dev-env.ts";
import { createSecrets, loadSecrets } from "../dev-secrets.ts";
import { CommandFailed, formatError, SettingsError } from "../errors.ts";
import { type ExampleUser, resolveExampleUser, unknownUser } from "../example-user.ts";
import { migrateServices } from "../migrate-services.ts";
import { plural, print, styled, table } from "../output.ts";
import { rejectBusyPorts } from "../ports.ts";
import { readProcessCount, runServices } from "../processes/index.ts";
import { type LoadedService, loadServices } from "../select-services.ts";
import type { Env, ServiceEntry } from "../services.ts";
import {
  findPortErrors,
  getDemoPort,
  getPostgresPort,
  getProviderPort,
  getServicePorts,
  listBuses,
  type Port,
  redactUrl,
  variable,
} from "../settings.ts";
import { listenForStop, type StopSignal } from "../stop-signal.ts";

export const dev: Command = {
  name: "dev",
  summary: "run everything on this machine, with its own database",
  usage: "todoke dev [--demo] [--use-database-url] [--processes <number>]",
  details: `
Starts PostgreSQL (installed by \`npm ci\`) and an OpenID provider with two players and an admin, runs the missing
migrations, and runs all services, in this process or in several (--processes). Data and keys are stored in .todoke/
and survive a restart, a crash and a kill -9.

  EVENT_BUS_URL            nats://…, amqp://… or postgres://…; without it the bus is in the database
  POINTS_RESERVATION_BUS_URL  another bus between scheduler and worker of points
  REDIS_URL                redis://…; without it sessions, rate limits and tickets are in the database
  OIDC_ISSUER              use this OpenID provider; needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET
  POSTGRES_PORT            port of the PostgreSQL server (8090)
  OIDC_PROVIDER_PORT       port of the OpenID provider (8089)
  <SERVICE>_PORT           port of a service (\`todoke help\` lists the defaults)

With --use-database-url it migrates and uses the PostgreSQL server in DATABASE_URL; OIDC_ISSUER must then be set.
Without the switch a DATABASE_URL in the environment is an error, so that nobody's database is changed by accident.

Ctrl-C or SIGTERM drains and stops. A second one stops at once.`,
  switches: {
    demo: "with a demo shop and example data, as `todoke demo`",
    "use-database-url": "use DATABASE_URL in place of the embedded PostgreSQL",
  },
  values: { processes: ["<number>", "run the services in so many processes, or `auto`: one for each core"] },
  takesArgs: false,
  async run({ env: given, services, switches, values }) {
    const isDemo = switches.has("demo");
    if (isDemo) rejectForeignEngines(given);
    const env = isDemo ? demoEnv(given) : given;
    const count = readProcessCount(values.processes);
    if (!switches.has("use-database-url")) rejectForeignDatabases(services, env);
    const stop = await listenForStop();
    const port = getPostgresPort(env);
    const issuer = demoIssuer(env);
    const parts = { databaseUrl: env.DATABASE_URL || placeholderUrl, issuer, services, secrets: await createSecrets() };
    const portErrors = findPortErrors([port, getProviderPort(env), getDemoPort(env)], env);
    const loaded = await loadServices(services, devEnv(env, parts), portErrors);
    await using folder = await lockDataFolder(port.number);
    const ports = services.flatMap((entry) => getServicePorts(entry, env));
    if (issuer) ports.push(getProviderPort(env));
    if (isDemo) ports.push(getDemoPort(env));
    await rejectBusyPorts(ports);
    await using database = env.DATABASE_URL ? externalDatabase(env.DATABASE_URL) : await startDatabase(port, folder);
    const partsWithDatabase = { ...parts, databaseUrl: database.url, secrets: await loadSecrets() };
    await using provider = issuer ? await startDemoProvider(devEnv(env, partsWithDatabase)) : undefined;
    // With the files for TLS, for other commands in this folder.
    const databaseUrl = readServerUrl({ ...env, DATABASE_URL: database.url }, "DATABASE_URL") ?? database.url;
    await folder.publish({ databaseUrl, ...(issuer && { issuer }) });
    stop.throwIfRequested();
    await runAll({ count, loaded, stop, provider, isDemo, env: devEnv(env, partsWithDatabase) });
    return 0;
  },
};

/** A variable left over in a shell must not make `todoke dev` migrate that database. */
function rejectForeignDatabases(services: readonly ServiceEntry[], env: Env): void {
  const names = ["DATABASE_URL", ...services.map((entry) => variable(entry.name, "DATABASE_URL"))];
  const errors = names.flatMap((name) => {
    const url = env[name];
    return url ? [`${name} is set to ${redactUrl(url)}, and \`todoke dev\` would migrate and use that database`] : [];
  });
  if (errors.length === 0) return;
  const todo = "Unset it to use the embedded PostgreSQL, or start with --use-database-url if you mean that database.";
  throw new SettingsError([...errors, todo]);
}

/** Used to check the settings before the database runs. */
const placeholderUrl = "postgres://127.0.0.1/postgres";

interface PreparedDev {
  readonly count: number;
  readonly loaded: readonly LoadedService[];
  readonly stop: StopSignal;
  readonly provider: DemoProvider | undefined;
  readonly isDemo: boolean;
  readonly env: Env;
}

async function runAll({ count, loaded, stop, provider, isDemo, env }: PreparedDev): Promise<void> {
  const ran = (await migrateServices(loaded, env, { dryRun: false })).flatMap((service) => service.ran);
  if (ran.length > 0) print(`Schemas: ${plural(ran.length, "migration")} ran`);
  stop.throwIfRequested();
  await using demo = isDemo ? await startDemo({ loaded, env, stop }) : undefined;
  const onReady = async (urls: Readonly<Record<string, string>>) => {
    const shop = await demo?.open();
    const alice = provider?.firstUser && (await resolveExampleUser(env, provider.issuer, provider.firstUser));
    printWelcome({ loaded, urls, env, provider, alice, shop });
  };
  await runServices({ count, loaded, env, stop, onReady });
}

type Database = Pick<Engine, "url"> & AsyncDisposable;

const externalDatabase = (url: string): Database => ({ url, async [Symbol.asyncDispose]() {} });

async function startDatabase(port: Port, folder: LockedFolder): Promise<Database> {
  if (folder.killedRun) await waitForKilledDatabase(folder.killedRun);
  await rejectBusyPorts([port]);
  print("Starting PostgreSQL …");
  try {
    const engine = await startEngine("postgres", { dir: `${dataFolder}/postgres`, port: port.number });
    print(`PostgreSQL ${engine.version} (${engine.origin}), data in ${dataFolder}/postgres`);
    return engine;
  } catch (error) {
    throw new CommandFailed(`PostgreSQL did not start: ${formatError(error)}`, { cause: error });
  }
}

/** How long PostgreSQL may take for its last checkpoint. It starts to stop as soon as its owner is killed. */
const killedDatabaseWaitMs = 30_000;

/** After a kill -9 of `todoke dev` its database still shuts down. A quick restart must wait for it. */
async function waitForKilledDatabase({ postgresPort }: DevProcess): Promise<void> {
  if (await isPortFree(postgresPort)) return;
  print("The previous run was killed. Waiting for its database to stop …");
  const deadline = performance.now() + killedDatabaseWaitMs;
  while (!(await isPortFree(postgresPort)) && performance.now() < deadline) await sleep(50);
}

interface Welcome extends Pick<PreparedDev, "loaded" | "provider" | "env"> {
  readonly urls: Readonly<Record<string, string>>;
  /** The demo user of the examples, if account knows her. */
  readonly alice: ExampleUser | undefined;
  /** Of the demo. */
  readonly shop: OpenShop | undefined;
}

function printWelcome({ loaded, urls, env, provider, alice, shop }: Welcome): void {
  const services = loaded.map(({ entry }) => ({ entry, url: entry.publicUrl?.(env) ?? urls[entry.name] ?? "" }));
  const rows = services.map(({ entry, url }) => [entry.name, url, entry.summary]);
  if (provider) rows.push(["provider", provider.issuer, "demo OpenID provider"]);
  if (env.DATABASE_URL) rows.push(["database", redactUrl(env.DATABASE_URL), "PostgreSQL"]);
  if (shop) rows.push(["arena shop", shop.url, `the demo for alice and bob; its back-end is process ${shop.pid}`]);
  const buses = listBuses(env).filter(({ url }) => url !== readServerUrl(env, "DATABASE_URL"));
  rows.push(...buses.map(({ url, variable }) => ["bus", redactUrl(url), variable]));
  print();
  print(table(rows));
  const origin = env.GATEWAY_BFF_ORIGIN;
  if (provider) print(`\nLog in${origin ? ` at ${origin}/login` : ""} as ${provider.logins.join(", ")}.`);
  if (origin) print(`The console for staff is at ${origin}/console, the API reference at ${origin}/docs.`);
  if (alice) print(`The user ID of alice is ${alice.userId}. What you grant to it appears in her inbox.`);
  const examples = services.flatMap(({ entry, url }) => entry.example?.(url, alice ?? unknownUser) ?? []);
  if (examples.length > 0) print(`\nTry it:\n\n${examples.join("\n\n")}`);
  print(`\n${styled("green", "✓")} Ready. Ctrl-C stops.`);
}
