/** Whether the event bus answers, and what in its settings weakens a promise. */
import { openBus } from "../bus.ts";
import { reasonOf } from "../faults.ts";
import type { Env } from "../services.ts";
import { busKeepMs, withoutSecrets } from "../settings.ts";
import { checkDatabase } from "./database.ts";
import { about, type Finding } from "./finding.ts";

export async function checkBus(env: Env): Promise<Finding[]> {
  const { ok, warning, fault } = about("bus");
  const url = env.EVENT_BUS_URL;
  if (!url || url === env.DATABASE_URL) return [ok("in the database")];
  // Opening the bus on PostgreSQL would create its tables; an examination changes nothing.
  if (/^postgres(ql)?:/.test(url)) return checkDatabase({ name: "bus", url, services: 0 });
  try {
    await using bus = await openBus(url, "todoke doctor", { keepMs: busKeepMs(env, []) });
    const { engine, warnings } = await bus.check();
    return [ok(`${engine} at ${withoutSecrets(url)}`), ...warnings.map((text) => warning(text))];
  } catch (error) {
    return [fault(`${withoutSecrets(url)}: ${reasonOf(error)}`, "Start it, or correct EVENT_BUS_URL.")];
  }
}
