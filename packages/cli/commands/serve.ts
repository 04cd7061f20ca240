/** `todoke serve`: runs the named services, or all that are configured. It starts all of them or none, and drains them at the end. */
import { MigrationError } from "@todoke/kernel/db";
import type { Command, Invocation } from "../command.ts";
import { embeddedDatabase } from "../data-folder.ts";
import { CommandFailed, SettingsError, UsageError } from "../errors.ts";
import { migrateServices } from "../migrate-services.ts";
import { plural, print, printError, styled, table } from "../output.ts";
import { rejectBusyPorts } from "../ports.ts";
import { readProcessCount, runServices } from "../processes/index.ts";
import { type LoadedService, loadServices, selectServices } from "../select-services.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { getDatabaseUrl, getServicePorts } from "../settings.ts";
import { listenForStop } from "../stop-signal.ts";

export const serve: Command = {
  name: "serve",
  summary: "run services, with the servers in the environment",
  usage: "todoke serve [service…] [--migrate] [--processes <number>]",
  details: `
Runs the named services, or all that have a database (the gateway only with OIDC_ISSUER). A process uses one core: with
--processes several share the ports, the log and the ops listeners. All of them serve the API; the first half also has
the other roles, unless <SERVICE>_ROLES is set. A process that dies is started again.

  DATABASE_URL             PostgreSQL 15 or newer; <SERVICE>_DATABASE_URL gives a service its own
  EVENT_BUS_URL            nats://…, amqp://… or postgres://…; without it the bus is in DATABASE_URL
  <SERVICE>_EVENT_BUS_URL  another bus for the events of a service; its consumers need it too
  POINTS_RESERVATION_BUS_URL  another bus between scheduler and worker of points
  <SERVICE>_PORT           port of the service (\`todoke help\` lists the defaults)
  TODOKE_TOKEN_KEYS        keys that sign calls to services; created by \`todoke keys pair\`

The gateway also needs OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, GATEWAY_BFF_ORIGIN (its public URL),
GATEWAY_BFF_SECRET (32 bytes, base64url), GATEWAY_BFF_TOKEN_KEY, and the URLs of the other services: ACCOUNT_URL,
ENTITLEMENT_URL, NOTIFICATION_URL, MATCHMAKING_URL, POINTS_URL, ORDERS_URL. Account reads its first staff from
ACCOUNT_ADMINS, ACCOUNT_OPERATORS and ACCOUNT_VIEWERS ("<issuer> <subject>,…").

The schemas must be up to date: run \`todoke migrate\` first, or start with --migrate.
SIGTERM or Ctrl-C drains: the services take no new work, finish what runs and release the rest. A second one stops
at once.`,
  switches: { migrate: "bring the schemas up to date first" },
  values: { processes: ["<number>", "run so many processes, or `auto`: one for each core"] },
  takesArgs: true,
  async run(call) {
    const count = readProcessCount(call.values.processes);
    const stop = await listenForStop();
    const loaded = await loadServices(selectServed(call), call.env);
    await rejectOpenDebug(loaded, call.env);
    await rejectBusyPorts(loaded.flatMap(({ entry }) => getServicePorts(entry, call.env)));
    await rejectUnmigrated(loaded, call);
    stop.throwIfRequested();
    const onReady = (urls: Readonly<Record<string, string>>) => print(table(Object.entries(urls)));
    await runServices({ count, loaded, env: call.env, stop, onReady });
    return 0;
  },
};

/** Without names, all that are configured. It prints them, because a service without a database is left out. */
function selectServed({ services, args, env }: Invocation): readonly ServiceEntry[] {
  if (args.length > 0) return selectServices(services, args, env);
  const served = services.filter((entry) => isConfigured(entry, env));
  if (served.length === 0)
    throw new UsageError(
      "No service has a database: set DATABASE_URL to run all of them, or name the services to run.",
    );
  const others = services.filter((entry) => !served.includes(entry));
  const without = others.length > 0 ? `; not configured: ${listNames(others)}` : "";
  printError(`Serving ${listNames(served)}${without}`);
  return served;
}

const isConfigured = (entry: ServiceEntry, env: Env): boolean =>
  getDatabaseUrl(entry, env) !== undefined && (entry.neededSetting === undefined || Boolean(env[entry.neededSetting]));

const listNames = (entries: readonly ServiceEntry[]): string => entries.map(({ name }) => name).join(", ");

/**
 * TODOKE_DEV=true opens /debug on the public ports of services. `todoke dev` sets it for itself. Here it is rejected unless
 * all services use the database of the `todoke dev` in this folder.
 */
async function rejectOpenDebug(loaded: readonly LoadedService[], env: Env): Promise<void> {
  if (env.TODOKE_DEV !== "true") return;
  const embedded = await embeddedDatabase();
  const others = loaded.filter(({ entry }) => {
    const url = URL.parse(getDatabaseUrl(entry, env) ?? "");
    return !url || url.host !== embedded?.host;
  });
  if (others.length === 0) return;
  const names = others.map(({ entry }) => entry.name).join(", ");
  throw new SettingsError([
    `TODOKE_DEV is "true", which opens /debug to every client: unset it. It is allowed only with the embedded database of ` +
      `\`todoke dev\`, and ${names} would use another. Operators find /debug on the ops listener.`,
  ]);
}

/**
 * During a rollout, processes of the old build run with schemas that the new build has migrated. Every migration supports
 * the previous build, so missing migrations prevent a start, and unknown ones do not.
 */
async function rejectUnmigrated(loaded: readonly LoadedService[], { env, switches }: Invocation): Promise<void> {
  const dryRun = !switches.has("migrate");
  const migrated = await migrateServices(loaded, env, { dryRun }).catch((error) => {
    if (!(error.cause instanceof MigrationError)) throw error;
    printError(`${styled("yellow", "!", process.stderr)} ${error.message}`);
    return [];
  });
  const missing = migrated.filter(({ ran }) => dryRun && ran.length > 0);
  if (missing.length === 0) return;
  const what = missing.map(({ service, ran }) => `${service} (${plural(ran.length, "migration")})`).join(", ");
  const names = missing.map(({ service }) => service).join(" ");
  throw new CommandFailed(`Migrations are missing: ${what}. Run \`todoke migrate ${names}\`, or start with --migrate.`);
}
