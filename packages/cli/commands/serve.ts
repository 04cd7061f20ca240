/** `todoke serve`: the named services on real servers. It starts all of them or none, and stops by draining. */
import { MigrationError } from "@todoke/kernel/db";
import { chosen, type Loaded, refuseMisconfigured } from "../choice.ts";
import type { Call, Command } from "../command.ts";
import { embeddedDatabase } from "../data-folder.ts";
import { CommandFailed, Misconfigured, Misused } from "../faults.ts";
import { migrateAll } from "../migrations.ts";
import { complain, plural, say, styled, table } from "../output.ts";
import { refuseBusy } from "../ports.ts";
import { startServices } from "../run-services.ts";
import type { Env } from "../services.ts";
import { databaseUrlOf, portsOf } from "../settings.ts";
import { hearStop } from "../stop.ts";

export const serve: Command = {
  name: "serve",
  summary: "run the named services, on the servers that the environment names",
  usage: "todoke serve <service…> [--migrate]",
  details: `
Runs one or several services in this process; start as many copies as you like.

  DATABASE_URL             PostgreSQL 15 or newer; <SERVICE>_DATABASE_URL gives a service its own
  EVENT_BUS_URL            nats://…, amqp://… or postgres://…; without it the bus is in DATABASE_URL
  <SERVICE>_PORT           where the service listens (\`todoke help\` lists the usual ports)
  TODOKE_TOKEN_KEYS        whose calls a service takes; \`todoke keys pair\` makes it and GATEWAY_BFF_TOKEN_KEY

The gateway also needs OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, GATEWAY_BFF_ORIGIN (what players see),
GATEWAY_BFF_SECRET (32 bytes, base64url), GATEWAY_BFF_TOKEN_KEY, and where the others are: ACCOUNT_URL, ENTITLEMENT_URL,
NOTIFICATION_URL, MATCHMAKING_URL, POINTS_URL. Account takes its first admins from ACCOUNT_ADMINS
("<issuer> <subject>,…").

The schemas must be up to date: run \`todoke migrate\` before, or start with --migrate.
SIGTERM or Ctrl-C drains: no new work is taken, what runs is finished, the rest is given back.
A second one ends it at once.`,
  switches: { migrate: "bring the schemas up to date first" },
  takesNames: true,
  async run(call) {
    if (call.names.length === 0) throw new Misused("Say which services to run.");
    const stop = await hearStop();
    const loaded = await refuseMisconfigured(chosen(call.services, call.names), call.env);
    await refuseOpenDebug(loaded, call.env);
    await refuseBusy(loaded.flatMap(({ entry }) => portsOf(entry, call.env)));
    await refuseUnmigrated(loaded, call);
    await using work = await startServices(loaded, call.env, stop);
    say(table(work.all.map(({ entry, running }) => [entry.name, running.url])));
    await work.untilStop();
    return 0;
  },
};

/**
 * TODOKE_DEV=true opens /debug on the services' own ports to everybody. `todoke dev` sets it for itself; here it is refused
 * unless the data is that of a `todoke dev` in this folder.
 */
async function refuseOpenDebug(loaded: readonly Loaded[], env: Env): Promise<void> {
  if (env.TODOKE_DEV !== "true") return;
  const embedded = await embeddedDatabase();
  const others = loaded.filter(({ entry }) => {
    const url = URL.parse(databaseUrlOf(entry, env) ?? "");
    return !url || url.host !== embedded?.host;
  });
  if (others.length === 0) return;
  const names = others.map(({ entry }) => entry.name).join(", ");
  throw new Misconfigured([
    `TODOKE_DEV is "true", which opens /debug to everybody: unset it. It is for the embedded database of \`todoke dev\` ` +
      `only, and ${names} would use another. Operators find /debug on the ops listener.`,
  ]);
}

/**
 * While a release is rolled out, copies of the old build meet schemas that the new one has migrated. They go on: every
 * migration keeps the build before it working. So only what is missing stops a start, not what is unknown.
 */
async function refuseUnmigrated(loaded: readonly Loaded[], { env, switches }: Call): Promise<void> {
  const dryRun = !switches.has("migrate");
  const migrated = await migrateAll(loaded, env, { dryRun }).catch((error) => {
    if (!(error.cause instanceof MigrationError)) throw error;
    complain(`${styled("yellow", "!", process.stderr)} ${error.message}`);
    return [];
  });
  const missing = migrated.filter(({ ran }) => dryRun && ran.length > 0);
  if (missing.length === 0) return;
  const what = missing.map(({ service, ran }) => `${service} (${plural(ran.length, "migration")})`).join(", ");
  const names = missing.map(({ service }) => service).join(" ");
  throw new CommandFailed(`Not up to date: ${what}. Run \`todoke migrate ${names}\`, or start with --migrate.`);
}
