/** The orders, reached by their database alone. */

import { Problem } from "@todoke/kernel/problem";
import { selectOrdersNamed } from "@todoke/orders/operator";
import { askerOf } from "../asker.ts";
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { CommandFailed, Misused } from "../faults.ts";
import { onDatabase, type ServiceDatabase } from "../service-database.ts";

/** Runs `work` on the service's schema, and says what to do where the database, or the service's own rules, refuse. */
export async function onOrders<T>(
  { services, env }: Pick<Call, "services" | "env">,
  work: (database: ServiceDatabase) => Promise<T>,
): Promise<T> {
  const [entry] = chosen(services, ["orders"]);
  if (!entry) throw new Misused("There are no orders here.");
  return onDatabase({ entry, env, purpose: "todoke orders" }, work).catch((error) => {
    throw error instanceof Problem ? new CommandFailed(`${error.title}: ${error.message}`) : error;
  });
}

/** The one name that stands on the command line. */
export function nameOf(names: readonly string[]): string {
  const [name] = names;
  if (name === undefined || names.length > 1) throw new Misused("Say which one: its idempotency key.");
  return name;
}

/** The id of the order that is meant; a key that several callers have is not guessed about. */
export async function idNamed({ db }: ServiceDatabase, name: string, caller: string | undefined): Promise<string> {
  const [first, ...others] = await selectOrdersNamed(db, { name, caller });
  if (!first) throw new CommandFailed(`There is no order under ${name}${caller ? ` of ${caller}` : ""}.`);
  if (others.length === 0) return first.id;
  const callers = [first, ...others].map((each) => each.caller).join(", ");
  throw new CommandFailed(`Several callers have an order under ${name}: say whose by --caller. They are ${callers}.`);
}

export interface Said {
  readonly reason: string;
  readonly by: string;
}

/** Who says so, and why. */
export function saidOf(values: Call["values"]): Said {
  const { reason = "" } = values;
  if (!reason.trim() || reason.length > 500) throw new Misused("Say why: --reason with 1 to 500 characters.");
  return { reason, by: askerOf(values) };
}
