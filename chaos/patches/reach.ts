/**
 * The actions of failpoints. A kill is SIGKILL of the own process, without clean-up; a stop is SIGSTOP, and the parent continues
 * it. Both are first reported in one line on standard error that begins with "chaos:".
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Claims } from "@todoke/kernel/claims";
import { type FailpointOrder, readOrders } from "./orders.ts";

const orders = readOrders(process.env.CHAOS_FAILPOINTS);
const hits = new Map<string, number>();

/** Called by patched code at a failpoint. */
export async function reach(name: string): Promise<void> {
  const hit = (hits.get(name) ?? 0) + 1;
  hits.set(name, hit);
  for (const order of orders) {
    if (order.name === name && (order.hit === hit || order.hit === "every")) await runAction(order, hit);
  }
}

async function runAction({ name, action, ms }: FailpointOrder, hit: number): Promise<void> {
  if (ms > 0) await sleep(ms);
  if (action === "delay") return;
  writeLine(`chaos: ${action} at ${name}, hit ${hit}\n`);
  if (action === "kill") process.kill(process.pid, "SIGKILL");
  if (action === "stop") process.kill(process.pid, "SIGSTOP");
  if (action === "throw") throw new Error(`chaos: injected error at ${name}`);
}

/** Synchronous, because the process may die at once. */
function writeLine(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // The output is closed or full; the action happens anyway.
  }
}

/** Reaches a failpoint after a request was sent and before its response. */
export async function reachWaiting<T>(name: string, answer: Promise<T>): Promise<T> {
  if (!orders.some((order) => order.name === name)) return answer;
  answer.catch(() => {}); // The caller handles the rejection.
  // The request is written in this turn of the event loop or the next.
  await turn();
  await reach(name);
  return answer;
}

const roles: Readonly<Record<string, string>> = {
  outbox_events: "relay",
  notifications: "sender",
  bus_deliveries: "delivery",
  inbox_dlq: "redriver",
};

/** The same table, with failpoints around every statement of its workers: "relay.claimed", "sender.settle-sent", … */
export function withFailpoints<Row>(claims: Claims<Row>): Claims<Row> {
  const role = roles[claims.table.table] ?? claims.table.table;
  return {
    ...claims,
    async claim(db, request) {
      const rows = await claims.claim(db, request);
      if (rows.length > 0) await reach(`${role}.claimed`);
      return rows;
    },
    async settle(db, settlements) {
      await reach(`${role}.settling`);
      const applied = await reachWaiting(`${role}.settle-sent`, claims.settle(db, settlements));
      await reach(`${role}.settled`);
      return applied;
    },
    async renew(db, held, leaseMs) {
      if (held.length > 0) await reach(`${role}.renewing`);
      return claims.renew(db, held, leaseMs);
    },
  };
}
