/**
 * `todoke orders resolve`: an operator decides whether the broker has an unresolved order. It asks for confirmation, because
 * a wrong decision loses the order, or has it taken twice.
 */
import { createInterface } from "node:readline/promises";
import { outboxTable } from "@todoke/kernel/outbox";
import { type OrderRow, selectOrder } from "@todoke/orders/operator";
import { resolveOrder } from "@todoke/orders/resolve-order";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { parseOperatorReason } from "../operator.ts";
import { oneLine, plural, print } from "../output.ts";
import { findOrderId, parseOrderKey, withOrders } from "./with-orders.ts";

type Resolution = "taken" | "not-taken";

export async function resolve(call: Invocation): Promise<number> {
  const { values, switches } = call;
  const name = parseOrderKey(call.args);
  const as = parseResolution(values.as);
  const brokerOrderId = values["broker-order-id"];
  if (brokerOrderId !== undefined && (as !== "taken" || !/^[\x21-\x7e]{1,128}$/.test(brokerOrderId)))
    throw new UsageError("--broker-order-id needs --as taken, and has 1 to 128 visible characters.");
  const operatorReason = parseOperatorReason(values);
  return withOrders(call, async (database) => {
    const id = await findOrderId(database.db, name, values.caller);
    const order = (await selectOrder(database.db, id)) as OrderRow;
    if (!switches.has("yes") && order.status === "unknown" && !(await askConfirmation(order, as))) {
      print("Nothing was changed.");
      return 1;
    }
    const resolved = await resolveOrder(database.db, {
      id,
      as,
      ...operatorReason,
      ...(brokerOrderId !== undefined && { brokerOrderId }),
    });
    for (const table of ["outbox_orders", outboxTable]) await database.wake(table);
    print(switches.has("json") ? JSON.stringify(resolved, null, 2) : `${name} is ${resolved.status}: ${effects[as]}.`);
    return 0;
  });
}

const effects: Readonly<Record<Resolution, string>> = {
  taken: "the broker has the order, and it is not sent again",
  "not-taken": "the order is sent again",
};

function parseResolution(given: string | undefined): Resolution {
  if (given === "taken" || given === "not-taken") return given;
  throw new UsageError("Say whether the broker has the order: --as taken or --as not-taken.");
}

/** The end of the input counts as no. */
async function askConfirmation(order: OrderRow, as: Resolution): Promise<boolean> {
  const { side, qty, instrument, caller, client_order_id, attempts, in_doubt_since } = order;
  print(`${side} ${qty} ${instrument} of ${oneLine(caller)}, client order id ${client_order_id}:`);
  print(`${plural(attempts, "attempt")}, unresolved since ${in_doubt_since}.`);
  print(`Resolved as ${as}, ${effects[as]}. If that is wrong, the order is ${risks[as]}.`);
  process.stdout.write('Type "yes" to continue: ');
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line.trim() === "yes";
  return false;
}

const risks: Readonly<Record<Resolution, string>> = { taken: "lost", "not-taken": "taken twice" };
