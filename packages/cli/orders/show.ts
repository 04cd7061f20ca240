/** `todoke orders show`: one order whole, with every step that it has taken. */
import { type OrderRow, type OrderStep, selectHistory, selectOrder } from "@todoke/orders/operator";
import type { Call } from "../command.ts";
import { fields } from "../dead/print.ts";
import { oneLine, say, table, toSeconds } from "../output.ts";
import type { ServiceDatabase } from "../service-database.ts";
import { idNamed, nameOf, onOrders } from "./open.ts";

/** An order has a dozen steps; one that was asked about for days may have this many. */
const stepsMax = 1_000;

export interface WholeOrder {
  readonly order: OrderRow;
  readonly history: readonly OrderStep[];
}

export async function show(call: Call): Promise<number> {
  const name = nameOf(call.names);
  const whole = await onOrders(call, async (database) =>
    wholeOrder(database, await idNamed(database, name, call.values.caller)),
  );
  if (call.switches.has("json")) say(JSON.stringify({ ...whole.order, history: whole.history }, null, 2));
  else say(`${fields(whole.order)}\nSteps:\n${table(whole.history.map(cells))}`);
  return 0;
}

async function wholeOrder({ db }: ServiceDatabase, id: string): Promise<WholeOrder> {
  const order = (await selectOrder(db, id)) as OrderRow;
  return { order, history: await selectHistory(db, { id, after: 0, limit: stepsMax }) };
}

const cells = ({ at, from, to, attempt, code, detail, by }: OrderStep): string[] => [
  toSeconds(at),
  `${from ?? "(new)"} -> ${to}`,
  `attempt ${attempt}`,
  oneLine(by),
  oneLine([code, detail].filter(Boolean).join(": ")),
];
