/** `todoke migrate`: runs the missing migrations and lists them. */

import type { Command } from "../command.ts";
import { migrateBuses, migrateServices } from "../migrate-services.ts";
import { plural, print, table } from "../output.ts";
import { loadForMigration, selectServices } from "../select-services.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "bring the database schemas up to date",
  usage: "todoke migrate [service…] [--dry-run]",
  details: `
Runs the missing migrations of the named services, or of all services that have a database, and lists them.
The database is DATABASE_URL, or <SERVICE>_DATABASE_URL for a service with its own database. No other setting is needed.
A bus of theirs in PostgreSQL (EVENT_BUS_URL, or DATABASE_URL without it) gets its tables too.

Run it as the owner of the tables. Services may run as roles that own nothing: deploy/postgres has their rights.

Safe to run at any time and from several processes at once: one runs the migrations, the others find none missing.
Fails if a migration was edited after it ran, or if a newer build has migrated the database.
\`todoke dev\` migrates its database whenever it starts.`,
  switches: { "dry-run": "list the missing migrations and change nothing" },
  takesArgs: true,
  async run({ env, services, args, switches }) {
    const dryRun = switches.has("dry-run");
    const entries = selectServices(services, args, env);
    const loaded = await loadForMigration(entries, env);
    const migrated = [...(await migrateServices(loaded, env, { dryRun })), await migrateBuses(loaded, env, { dryRun })];
    const rows = migrated.flatMap(({ service, ran }) => ran.map((file) => [service, file]));
    if (rows.length > 0) print(table(rows));
    if (rows.length === 0) print("Every schema is up to date.");
    else print(`${plural(rows.length, "migration")} ${dryRun ? "would run; nothing was changed" : "ran"}.`);
    return 0;
  },
};
