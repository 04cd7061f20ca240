/** `todoke migrate`: the schemas brought up to date, and an account of it. */
import { chosen, refuseMisconfigured } from "../choice.ts";
import type { Command } from "../command.ts";
import { migrateAll } from "../migrations.ts";
import { plural, say, table } from "../output.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "bring the database schemas up to date",
  usage: "todoke migrate [service…] [--dry-run]",
  details: `
Runs the migrations that have not run yet, of the named services or of all, and says which.
The database is the one in DATABASE_URL, or the service's own in <SERVICE>_DATABASE_URL.

Safe to run at any time and from many processes at once: one works, the others find nothing left to do.
Refuses a migration that was edited after it ran, and a database that a newer build has migrated.
The database of \`todoke dev\` is migrated whenever it starts.`,
  switches: { "dry-run": "say what would run, and change nothing" },
  takesNames: true,
  async run({ env, services, names, switches }) {
    const dryRun = switches.has("dry-run");
    const entries = chosen(services, names);
    const loaded = await refuseMisconfigured(entries, env);
    const migrated = await migrateAll(loaded, env, { dryRun });
    const rows = migrated.flatMap(({ service, ran }) => ran.map((file) => [service, file]));
    if (rows.length > 0) say(table(rows));
    if (rows.length === 0) say("Nothing to do: every schema is up to date.");
    else say(`${plural(rows.length, "migration")} ${dryRun ? "would run; nothing was changed" : "ran"}.`);
    return 0;
  },
};
