/** `todoke orders cancel-all`: cancels open orders of all callers, in batches, and prints the result of each. */
import { outboxTable } from "@todoke/kernel/outbox";
import { type CancelledOrder, cancelAllOrders } from "@todoke/orders/cancel-all-orders";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { parseOperator } from "../operator.ts";
import { oneLine, plural, print, table } from "../output.ts";
import { withOrders } from "./with-orders.ts";

const batchMax = 100;

export async function cancelAll(call: Invocation): Promise<number> {
  const { args, values, switches } = call;
  if (args.length > 0) throw new UsageError("cancel-all takes no arguments. Name an instrument with --instrument.");
  if (!switches.has("yes"))
    throw new UsageError("cancel-all cancels every open order that it finds. Confirm with --yes.");
  const { instrument, caller } = values;
  const filter = { ...(instrument !== undefined && { instrument }), ...(caller !== undefined && { caller }) };
  const results = await withOrders(call, async ({ db, wake }) => {
    const all: CancelledOrder[] = [];
    const cancel = cancelAllOrders({ db, onAborted: () => {}, onRequested: () => {} });
    for (let after: string | undefined = "0"; after !== undefined; ) {
      const batch = await cancel({ ...filter, by: parseOperator(values), after, limit: batchMax });
      all.push(...batch.results);
      after = batch.next;
      for (const table of ["cancel_requests", outboxTable]) await wake(table);
    }
    return all;
  });
  if (switches.has("json")) print(JSON.stringify({ results }, null, 2));
  else show(results);
  return 0;
}

function show(results: readonly CancelledOrder[]): void {
  if (results.length === 0) {
    print("There are no open orders.");
    return;
  }
  print(table([["key", "caller", "order", "result"], ...results.map(cells)]));
  const requested = results.filter(({ result }) => result === "requested").length;
  print(
    `  ${plural(results.length, "order")}, ${requested} to be cancelled at the broker: \`todoke orders show <key>\`.`,
  );
}

const meanings: Readonly<Record<CancelledOrder["result"], string>> = {
  cancelled: "cancelled: it was not sent",
  requested: "requested: the broker is asked",
  ended: "ended in the meantime",
};

const cells = ({ result, order }: CancelledOrder): string[] => [
  oneLine(order.idempotency_key),
  oneLine(order.caller),
  oneLine(`${order.side} ${order.qty} ${order.instrument}${order.price === null ? "" : ` at ${order.price}`}`),
  meanings[result],
];
