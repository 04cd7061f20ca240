/** `todoke orders list`: pages of orders, newest first; or of those in doubt, the longest in doubt first. */
import {
  type Listed,
  type OrderRow,
  type OrderStatus,
  orderStatuses,
  selectOrders,
  selectUnresolved,
} from "@todoke/orders/operator";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { oneLine, say, table, toSeconds } from "../output.ts";
import { onOrders } from "./open.ts";

const limitUsual = 50;
const limitMax = 1_000;

export async function list(call: Call): Promise<number> {
  const { names, switches, values } = call;
  if (names.length > 0) throw new Misused(`What is ${names[0]} for? An order is seen by \`todoke orders show\`.`);
  const limit = limitOf(values.limit);
  const after = placeOf(values.after);
  const unresolved = switches.has("unresolved");
  if (unresolved && (values.status !== undefined || values.instrument !== undefined))
    throw new Misused("--unresolved lists all that are in doubt: without --status and --instrument.");
  const filter = {
    ...statusOf(values.status),
    ...(values.instrument !== undefined && { instrument: values.instrument }),
  };
  const found = await onOrders(call, ({ db }) => {
    const page = { after, limit: limit + 1 };
    return unresolved ? selectUnresolved(db, page) : selectOrders(db, { ...filter, ...page });
  });
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const next = last && `${unresolved ? last.in_doubt_since : last.created_at},${last.id}`;
  if (switches.has("json")) say(JSON.stringify({ orders: rows, ...(next !== undefined && { next }) }, null, 2));
  else show(rows, { unresolved, next });
  return 0;
}

function limitOf(given: string | undefined): number {
  const limit = Number(given ?? limitUsual);
  if (Number.isInteger(limit) && limit >= 1 && limit <= limitMax) return limit;
  throw new Misused(`--limit is a number from 1 to ${limitMax}.`);
}

function statusOf(given: string | undefined): { readonly status?: OrderStatus } {
  if (given === undefined) return {};
  const status = orderStatuses.find((known) => known === given);
  if (status) return { status };
  throw new Misused(`--status is one of ${orderStatuses.join(", ")}.`);
}

function placeOf(given: string | undefined): Listed | undefined {
  if (given === undefined) return undefined;
  const [, created_at, id] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),([1-9]\d{0,17})$/.exec(given) ?? [];
  if (created_at === undefined || id === undefined) throw new Misused("--after is what the page before ends with.");
  return { created_at, id };
}

function show(
  rows: readonly OrderRow[],
  { unresolved, next }: { unresolved: boolean; next: string | undefined },
): void {
  if (rows.length === 0) {
    say(unresolved ? "Nothing: no order is in doubt." : "Nothing: there is no such order.");
    return;
  }
  const head = ["key", "caller", "order", "status", "attempts", unresolved ? "in doubt since" : "accepted", "reason"];
  say(table([head, ...rows.map((row) => cells(row, unresolved))]));
  if (next !== undefined) say(`  More: the same with --after ${next}`);
}

const cells = (row: OrderRow, unresolved: boolean): string[] => [
  oneLine(row.idempotency_key),
  oneLine(row.caller),
  oneLine(`${row.side} ${row.qty} ${row.instrument}${row.price === null ? "" : ` at ${row.price}`}`),
  row.status,
  String(row.attempts),
  toSeconds((unresolved ? row.in_doubt_since : row.created_at) ?? ""),
  oneLine([row.reason_code, row.reason].filter(Boolean).join(": ")),
];
