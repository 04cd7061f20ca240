/**
 * `todoke orders resolve`: a person says what became of an order that the broker could not tell of. It asks first, for
 * a wrong word here is an order lost, or taken twice.
 */
import { createInterface } from "node:readline/promises";
import { outboxTable } from "@todoke/kernel/outbox";
import { type OrderRow, selectOrder } from "@todoke/orders/operator";
import { resolveOrder } from "@todoke/orders/resolve-order";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { oneLine, say } from "../output.ts";
import type { ServiceDatabase } from "../service-database.ts";
import { idNamed, nameOf, onOrders, saidOf } from "./open.ts";

type As = "taken" | "not-taken";

export async function resolve(call: Call): Promise<number> {
  const { values, switches } = call;
  const name = nameOf(call.names);
  const as = asOf(values.as);
  const brokerOrderId = values["broker-order-id"];
  if (brokerOrderId !== undefined && (as !== "taken" || !/^[\x21-\x7e]{1,128}$/.test(brokerOrderId)))
    throw new Misused("--broker-order-id goes with --as taken, and has 1 to 128 visible characters.");
  const said = saidOf(values);
  return onOrders(call, async (database) => {
    const id = await idNamed(database, name, values.caller);
    const order = (await selectOrder(database.db, id)) as OrderRow;
    if (!switches.has("yes") && order.status === "unknown" && !(await isConfirmed(order, as))) {
      say("Nothing was done.");
      return 1;
    }
    const resolved = await resolveOrder(database.db, {
      id,
      as,
      ...said,
      ...(brokerOrderId !== undefined && { brokerOrderId }),
    });
    await tell(database);
    say(switches.has("json") ? JSON.stringify(resolved, null, 2) : `${name} is ${resolved.status}: ${ends[as]}.`);
    return 0;
  });
}

const ends: Readonly<Record<As, string>> = {
  taken: "the broker has it, and nothing more is sent",
  "not-taken": "it is sent again",
};

function asOf(given: string | undefined): As {
  if (given === "taken" || given === "not-taken") return given;
  throw new Misused("Say what became of it: --as taken, or --as not-taken.");
}

/** An end of the input is a no. */
async function isConfirmed(order: OrderRow, as: As): Promise<boolean> {
  const { side, qty, instrument, caller, client_order_id, attempts, in_doubt_since } = order;
  say(`${side} ${qty} ${instrument} of ${oneLine(caller)}, which the broker knows as ${client_order_id}:`);
  say(`sent ${attempts} times, and in doubt since ${in_doubt_since}.`);
  say(`As ${as}, ${ends[as]}. If that is not what the broker's books say, an order is ${harm[as]}.`);
  process.stdout.write('Type "yes" to go on: ');
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line.trim() === "yes";
  return false;
}

const harm: Readonly<Record<As, string>> = { taken: "lost", "not-taken": "taken twice" };

/** The poll finds it as well; a wake-up that fails is no reason to say that the command has. */
async function tell({ wake }: ServiceDatabase): Promise<void> {
  for (const table of ["outbox_orders", outboxTable]) await wake(table).catch(() => {});
}
