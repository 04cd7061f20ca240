/** Checks whether an event bus responds, and whether its settings weaken a guarantee. */
import { type BusAddress, readServerUrl } from "@todoke/service";
import { openBus } from "../bus.ts";
import { formatError } from "../errors.ts";
import type { Env } from "../services.ts";
import { readBusKeepMs, redactUrl } from "../settings.ts";
import { checkDatabase } from "./database.ts";
import { type Finding, findingsFor, unreachableRemedy } from "./finding.ts";

/** `name` is shown with the findings: "bus", or "bus (POINTS_RESERVATION_BUS_URL)". */
export async function checkBus(name: string, { url, variable }: BusAddress, env: Env): Promise<Finding[]> {
  const { ok, warning, fault } = findingsFor(name);
  if (url === readServerUrl(env, "DATABASE_URL")) return [ok("in the database")];
  // Opening the PostgreSQL bus would create its tables, and a check changes nothing.
  if (/^postgres(ql)?:/.test(url)) return checkDatabase({ name, url, variable, services: 0 });
  try {
    await using bus = await openBus(url, "todoke doctor", { keepMs: readBusKeepMs(env, []) });
    const { engine, warnings } = await bus.check();
    return [ok(`${engine} at ${redactUrl(url)}`), ...warnings.map((text) => warning(text))];
  } catch (error) {
    return [
      fault(
        `${redactUrl(url)}: ${formatError(error)}`,
        unreachableRemedy(error, variable) ?? `Start it, or correct ${variable}.`,
      ),
    ];
  }
}
