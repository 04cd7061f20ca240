/** `todoke orders show`: one order with its history. */
import { type OrderRow, type OrderStep, selectHistory, selectOrder } from "@todoke/orders/operator";
import type { Invocation } from "../command.ts";
import { formatFields } from "../dead/format.ts";
import { formatTime, oneLine, print, table } from "../output.ts";
import { findOrderId, parseOrderKey, withOrders } from "./with-orders.ts";

/** An order has about a dozen steps. One that was checked for days may have this many. */
const stepsMax = 1_000;

export async function show(call: Invocation): Promise<number> {
  const name = parseOrderKey(call.args);
  const { order, history } = await withOrders(call, async ({ db }) => {
    const id = await findOrderId(db, name, call.values.caller);
    const order = (await selectOrder(db, id)) as OrderRow;
    return { order, history: await selectHistory(db, { id, after: 0, limit: stepsMax }) };
  });
  if (call.switches.has("json")) print(JSON.stringify({ ...order, history }, null, 2));
  else print(`${formatFields(order)}\nHistory:\n${table(history.map(cells))}`);
  return 0;
}

const cells = ({ at, from, to, attempt, code, detail, by }: OrderStep): string[] => [
  formatTime(at),
  `${from ?? "(new)"} -> ${to}`,
  `attempt ${attempt}`,
  oneLine(by),
  oneLine([code, detail].filter(Boolean).join(": ")),
];
