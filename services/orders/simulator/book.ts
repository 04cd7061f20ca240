/**
 * The simulator's order book: a file with a line for every request and every taken order, written before the reply. After a kill the
 * simulator has everything that it confirmed, and a test can count orders that were taken twice.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import type { WireFill, WireOrder } from "../brokers/http/protocol.ts";
import { areEqualDecimals, type Decimal, formatDecimal, sumDecimals } from "../order/decimal.ts";

export type Entry =
  | {
      readonly kind: "request";
      readonly at: number;
      readonly method: string;
      readonly path: string;
      readonly nonce: string;
      readonly timestamp: number;
      /** The code of a refused request. */
      readonly refused?: string;
    }
  /** One entry each time: without deduplication the same order can be taken twice. */
  | { readonly kind: "taken"; readonly at: number; readonly order: WireOrder }
  | { readonly kind: "cancelled"; readonly at: number; readonly clientOrderId: string }
  | { readonly kind: "filled"; readonly at: number; readonly clientOrderId: string; readonly fill: WireFill };

/** All complete lines. A line that a kill has cut off was not replied to, and does not count. */
export function readEntries(file: string): Entry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines
    .filter((line) => line.startsWith("{") && line.endsWith("}~"))
    .map((line) => JSON.parse(line.slice(0, -1)));
}

export interface Book extends Disposable {
  /** Oldest first. */
  readonly orders: readonly WireOrder[];
  find(clientOrderId: string): WireOrder | undefined;
  hasSeen(nonce: string): boolean;
  logRequest(request: Extract<Entry, { kind: "request" }>): void;
  take(order: WireOrder): void;
  cancel(clientOrderId: string): WireOrder | undefined;
  /** Fills a part of an order. The order ends when all of it is filled. */
  fill(clientOrderId: string, fill: WireFill): void;
  /** In the order of the trades. */
  fillsOf(clientOrderId: string): readonly WireFill[];
}

export function openBook(file: string): Book {
  const orders: WireOrder[] = [];
  const indexes = new Map<string, number>();
  const nonces = new Set<string>();
  const fills = new Map<string, WireFill[]>();
  const entries = readEntries(file);
  const fd = openSync(file, "a");
  writeSync(fd, "\n"); // An incomplete last line stays on its own.

  function apply(entry: Entry): void {
    if (entry.kind === "request" && entry.refused === undefined) nonces.add(entry.nonce);
    if (entry.kind === "taken") {
      if (!indexes.has(entry.order.client_order_id)) indexes.set(entry.order.client_order_id, orders.length);
      orders.push(entry.order);
      if (!fills.has(entry.order.client_order_id))
        fills.set(entry.order.client_order_id, [...(entry.order.fills ?? [])]);
    }
    if (entry.kind === "filled") applyFill(entry.clientOrderId, entry.fill);
    if (entry.kind === "cancelled") {
      const index = indexes.get(entry.clientOrderId) as number;
      orders[index] = { ...(orders[index] as WireOrder), status: "cancelled" };
    }
  }

  function applyFill(clientOrderId: string, fill: WireFill): void {
    const all = fills.get(clientOrderId) as WireFill[];
    all.push(fill);
    const index = indexes.get(clientOrderId) as number;
    const order = orders[index] as WireOrder;
    const filled = sumDecimals(all.map((each) => each.qty)) as Decimal;
    orders[index] = {
      ...order,
      filled_qty: formatDecimal(filled),
      price: fill.price,
      status: order.status === "open" && areEqualDecimals(order.qty, filled) ? "filled" : order.status,
    };
  }

  function write(entry: Entry): void {
    writeSync(fd, `${JSON.stringify(entry)}~\n`); // Marks the line as complete.
    apply(entry);
  }

  entries.forEach(apply);
  const find = (clientOrderId: string) => orders[indexes.get(clientOrderId) ?? -1];
  return {
    orders,
    find,
    hasSeen: (nonce) => nonces.has(nonce),
    logRequest: write,
    take: (order) => write({ kind: "taken", at: Date.now(), order }),
    cancel(clientOrderId) {
      write({ kind: "cancelled", at: Date.now(), clientOrderId });
      return find(clientOrderId);
    },
    fill: (clientOrderId, fill) => write({ kind: "filled", at: Date.now(), clientOrderId, fill }),
    fillsOf: (clientOrderId) => fills.get(clientOrderId) ?? [],
    [Symbol.dispose]: () => closeSync(fd),
  };
}
