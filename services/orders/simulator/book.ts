/**
 * The simulator's books: every request that it got and every order that it took, a line each, in the file before anything
 * is answered. Killed at any moment it comes back with all that it ever confirmed, and a reader of the file can count
 * what was taken twice.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import type { WireOrder } from "../brokers/http/protocol.ts";

export type Entry =
  | {
      readonly kind: "request";
      readonly at: number;
      readonly method: string;
      readonly path: string;
      readonly nonce: string;
      readonly timestamp: number;
      /** Why it was turned away, where it was. */
      readonly refused?: string;
    }
  /** One for each time that it was taken: without dedupe, twice is two orders. */
  | { readonly kind: "taken"; readonly at: number; readonly order: WireOrder }
  | { readonly kind: "cancelled"; readonly at: number; readonly clientOrderId: string };

/** All whole lines of the file: one that a kill has cut off was never answered, and does not count. */
export function readEntries(file: string): Entry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines
    .filter((line) => line.startsWith("{") && line.endsWith("}~"))
    .map((line) => JSON.parse(line.slice(0, -1)));
}

export interface Book extends Disposable {
  /** In the order in which they were taken. */
  readonly orders: readonly WireOrder[];
  find(clientOrderId: string): WireOrder | undefined;
  hasSeen(nonce: string): boolean;
  note(request: Extract<Entry, { kind: "request" }>): void;
  take(order: WireOrder): void;
  cancel(clientOrderId: string): WireOrder | undefined;
}

export function openBook(file: string): Book {
  const orders: WireOrder[] = [];
  const places = new Map<string, number>();
  const nonces = new Set<string>();
  const entries = readEntries(file);
  const fd = openSync(file, "a");
  writeSync(fd, "\n"); // Whatever a kill has cut off stays on a line of its own.

  function keep(entry: Entry): void {
    if (entry.kind === "request" && entry.refused === undefined) nonces.add(entry.nonce);
    if (entry.kind === "taken") {
      if (!places.has(entry.order.client_order_id)) places.set(entry.order.client_order_id, orders.length);
      orders.push(entry.order);
    }
    if (entry.kind === "cancelled") {
      const place = places.get(entry.clientOrderId) as number;
      orders[place] = { ...(orders[place] as WireOrder), status: "cancelled" };
    }
  }

  function write(entry: Entry): void {
    writeSync(fd, `${JSON.stringify(entry)}~\n`); // A line that ends so is whole.
    keep(entry);
  }

  entries.forEach(keep);
  const find = (clientOrderId: string) => orders[places.get(clientOrderId) ?? -1];
  return {
    orders,
    find,
    hasSeen: (nonce) => nonces.has(nonce),
    note: write,
    take: (order) => write({ kind: "taken", at: Date.now(), order }),
    cancel(clientOrderId) {
      write({ kind: "cancelled", at: Date.now(), clientOrderId });
      return find(clientOrderId);
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}
