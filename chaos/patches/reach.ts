/**
 * What a failpoint does in the process that has it: nothing, until it is reached for the n-th time by somebody's order.
 *
 * A kill is SIGKILL of the process itself, so there is no clean-up and no goodbye, as after a power cut. A stop is
 * SIGSTOP: whoever runs the process continues it. Either is told first, in one line on standard error that begins with
 * "chaos:", which whoever runs the process can count.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Claims } from "@todoke/kernel/claims";
import { type FailpointOrder, readOrders } from "./orders.ts";

const orders = readOrders(process.env.CHAOS_FAILPOINTS);
const hits = new Map<string, number>();

/** Called by patched code when it gets to a failpoint. */
export async function reach(name: string): Promise<void> {
  const hit = (hits.get(name) ?? 0) + 1;
  hits.set(name, hit);
  for (const order of orders) {
    if (order.name === name && (order.hit === hit || order.hit === "every")) await carryOut(order, hit);
  }
}

async function carryOut({ name, action, ms }: FailpointOrder, hit: number): Promise<void> {
  if (ms > 0) await sleep(ms);
  if (action === "delay") return;
  tell(`chaos: ${action} at ${name}, hit ${hit}\n`);
  if (action === "kill") process.kill(process.pid, "SIGKILL");
  if (action === "stop") process.kill(process.pid, "SIGSTOP");
  if (action === "throw") throw new Error(`chaos: told to fail at ${name}`);
}

/** At once: nothing that waits for the event loop would be heard from a process that is about to die. */
function tell(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // Nobody reads it, or not fast enough: what was ordered is done all the same.
  }
}

/** Reaches a failpoint when `answer` has been asked for and has not come yet. */
export async function reachWaiting<T>(name: string, answer: Promise<T>): Promise<T> {
  answer.catch(() => {}); // Whoever awaits the result hears of it.
  // A request is handed to the socket in the turn in which a connection is free, which is this one or the next.
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
      const won = await reachWaiting(`${role}.settle-sent`, claims.settle(db, settlements));
      await reach(`${role}.settled`);
      return won;
    },
    async renew(db, held, leaseMs) {
      if (held.length > 0) await reach(`${role}.renewing`);
      return claims.renew(db, held, leaseMs);
    },
  };
}
