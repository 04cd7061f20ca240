/** Connects to the database of orders. The service need not run. */
import type { Db } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import { selectOrdersByName } from "@todoke/orders/operator";
import type { Invocation } from "../command.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { selectService } from "../select-services.ts";
import { type ServiceDatabase, withDatabase } from "../service-database.ts";

/** Runs `work` on the schema of orders. An error of the database or a Problem of the service becomes a CommandFailed. */
export async function withOrders<T>(
  { services, env }: Pick<Invocation, "services" | "env">,
  work: (database: ServiceDatabase) => Promise<T>,
): Promise<T> {
  const entry = selectService(services, "orders");
  return withDatabase({ entry, env, purpose: "todoke orders" }, work).catch((error) => {
    throw error instanceof Problem ? new CommandFailed(`${error.title}: ${error.message}`) : error;
  });
}

export function parseOrderKey(names: readonly string[]): string {
  const [name] = names;
  if (name === undefined || names.length > 1) throw new UsageError("Name one order by its idempotency key.");
  return name;
}

/** If several callers used the key, --caller is required. */
export async function findOrderId(db: Db, name: string, caller: string | undefined): Promise<string> {
  const [first, ...others] = await selectOrdersByName(db, { name, caller });
  if (!first) throw new CommandFailed(`There is no order with the key ${name}${caller ? ` of ${caller}` : ""}.`);
  if (others.length === 0) return first.id;
  const callers = [first, ...others].map((each) => each.caller).join(", ");
  throw new CommandFailed(`Several callers have an order with the key ${name}. Choose one with --caller: ${callers}.`);
}
