/** `todoke orders list`: pages of orders, newest first; with --unresolved, of unresolved orders, oldest first. */
import {
  type OrderCursor,
  type OrderRow,
  type OrderStatus,
  orderStatuses,
  selectOrders,
  selectUnresolved,
} from "@todoke/orders/operator";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { formatTime, oneLine, print, table } from "../output.ts";
import { parseLimit } from "../paging.ts";
import { withOrders } from "./with-orders.ts";

export async function list(call: Invocation): Promise<number> {
  const { args, switches, values } = call;
  if (args.length > 0)
    throw new UsageError(`list takes no arguments. \`todoke orders show ${args[0]}\` shows an order.`);
  const limit = parseLimit(values);
  const after = parseCursor(values.after);
  const unresolved = switches.has("unresolved");
  if (unresolved && (values.status !== undefined || values.instrument !== undefined))
    throw new UsageError("--unresolved cannot be combined with --status or --instrument.");
  const filter = {
    ...parseStatus(values.status),
    ...(values.instrument !== undefined && { instrument: values.instrument }),
  };
  const found = await withOrders(call, ({ db }) => {
    const page = { after, limit: limit + 1 };
    return unresolved ? selectUnresolved(db, page) : selectOrders(db, { ...filter, ...page });
  });
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const next = last && `${unresolved ? last.in_doubt_since : last.created_at},${last.id}`;
  if (switches.has("json")) print(JSON.stringify({ orders: rows, ...(next !== undefined && { next }) }, null, 2));
  else show(rows, { unresolved, next });
  return 0;
}

function parseStatus(given: string | undefined): { readonly status?: OrderStatus } {
  if (given === undefined) return {};
  const status = orderStatuses.find((known) => known === given);
  if (status) return { status };
  throw new UsageError(`--status is one of ${orderStatuses.join(", ")}.`);
}

function parseCursor(given: string | undefined): OrderCursor | undefined {
  if (given === undefined) return undefined;
  const [, created_at, id] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),([1-9]\d{0,17})$/.exec(given) ?? [];
  if (created_at === undefined || id === undefined)
    throw new UsageError("--after is the cursor at the end of the previous page.");
  return { created_at, id };
}

function show(
  rows: readonly OrderRow[],
  { unresolved, next }: { unresolved: boolean; next: string | undefined },
): void {
  if (rows.length === 0) {
    print(unresolved ? "There are no unresolved orders." : "There are no such orders.");
    return;
  }
  const head = ["key", "caller", "order", "status", "attempts", unresolved ? "unresolved since" : "accepted", "reason"];
  print(table([head, ...rows.map((row) => cells(row, unresolved))]));
  if (next !== undefined) print(`  Next page: the same command with --after ${next}`);
}

const cells = (row: OrderRow, unresolved: boolean): string[] => [
  oneLine(row.idempotency_key),
  oneLine(row.caller),
  oneLine(`${row.side} ${row.qty} ${row.instrument}${row.price === null ? "" : ` at ${row.price}`}`),
  row.status,
  String(row.attempts),
  formatTime((unresolved ? row.in_doubt_since : row.created_at) ?? ""),
  oneLine([row.reason_code, row.reason].filter(Boolean).join(": ")),
];
