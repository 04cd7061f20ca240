/** Whether a service's schema is as its code expects it. */
import { reasonOf } from "../faults.ts";
import { plural } from "../output.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { databaseUrlOf } from "../settings.ts";
import { about, type Finding } from "./finding.ts";

export async function checkMigrations(entry: ServiceEntry, env: Env): Promise<Finding[]> {
  const { ok, fault } = about(entry.name);
  if (!databaseUrlOf(entry, env)) return [ok("migrated when `todoke dev` starts")];
  const service = await entry.load();
  const faults = service.configErrors(env);
  if (faults.length > 0) return faults.map((says) => fault(says, "Correct it."));
  try {
    const missing = await service.migrate(env, { dryRun: true });
    if (missing.length === 0) return [ok("its schema is up to date")];
    return [fault(`${plural(missing.length, "migration")} not run yet`, `Run \`todoke migrate ${entry.name}\`.`)];
  } catch (error) {
    return [fault(`its schema cannot be told: ${reasonOf(error)}`, "See the database's own findings first.")];
  }
}
