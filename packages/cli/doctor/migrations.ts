/** Checks whether the schema of a service is up to date. */
import { formatError } from "../errors.ts";
import { plural } from "../output.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { getDatabaseUrl } from "../settings.ts";
import { type Finding, findingsFor } from "./finding.ts";

export async function checkMigrations(
  entry: ServiceEntry,
  env: Env,
  { isNamed }: { readonly isNamed: boolean },
): Promise<Finding[]> {
  const { ok, fault } = findingsFor(entry.name);
  if (!getDatabaseUrl(entry, env)) return [ok("migrated when `todoke dev` starts")];
  const service = await entry.load();
  const isUnused = !isNamed && entry.neededSetting !== undefined && !env[entry.neededSetting];
  const errors = isUnused ? [] : service.configErrors(env);
  if (errors.length > 0) return errors.map((says) => fault(says, "Correct it."));
  try {
    const missing = await service.migrate(env, { dryRun: true });
    const unused = isUnused ? `; not configured, because ${entry.neededSetting} is not set` : "";
    if (missing.length === 0) return [ok(`the schema is up to date${unused}`)];
    return [fault(`${plural(missing.length, "migration")} not run yet`, `Run \`todoke migrate ${entry.name}\`.`)];
  } catch (error) {
    return [fault(`its schema cannot be checked: ${formatError(error)}`, "Fix the findings of the database first.")];
  }
}
