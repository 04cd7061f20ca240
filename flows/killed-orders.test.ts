/**
 * Orders under kill -9: senders die at every failpoint, replies are lost, the broker is killed, and four senders continue. The
 * broker has every accepted order once, whether it deduplicates or not.
 */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { failpointEnv } from "./failpoint-env.ts";
import { longWait, type OrdersSetup, openOrders, placeOrder, sampleOrder } from "./orders.ts";
import type { ServiceProcess } from "./service-process.ts";

/** Each process dies at the second hit, so that another order is in flight. */
const steps = [
  "order.claimed",
  "order.dispatched",
  "order.request-sent",
  "order.replied",
  "order.checked",
  "order.transitioning",
  "order.transitioned",
];
const ordersEach = 5;

async function placeOrders(at: ServiceProcess, name: string): Promise<void> {
  const placed = Array.from({ length: ordersEach }, (_, n) => placeOrder(at, sampleOrder(`${name}-${n}`)));
  expect((await Promise.all(placed)).map(({ status }) => status)).toEqual(Array(ordersEach).fill(201));
}

async function killSenderAt(setup: OrdersSetup, at: ServiceProcess, step: string): Promise<void> {
  // Unresolved orders, so that there is something to ask the broker about.
  await setup.simulator.fault("lost-after", "lost-before", "lost-after");
  const killed = await setup.launch({ ORDERS_ROLES: "sender", ...failpointEnv("kill", { name: step, hit: 2 }) });
  let hasExited = false;
  killed.exited.then(() => (hasExited = true));
  await placeOrders(at, step);
  await until(`a sender dies at ${step}`, () => hasExited, longWait);
}

test.each([true, false])(
  "the broker has every accepted order once (it deduplicates: %s)",
  { timeout: 900_000 },
  async (dedupes) => {
    // Every crash costs an attempt, and none may be the last one.
    await using setup = await openOrders({
      dedupes,
      windowMs: 4_000,
      simulator: ["--slow-ms", "300"],
      settings: {
        // Short, so that orders of a dead sender are claimed again soon.
        ORDERS_LEASE_MS: "4000",
        ORDERS_BROKER_TIMEOUT_MS: "2000",
        // A busy machine costs attempts too, so the last ones have long delays.
        ORDERS_BACKOFF_SECONDS: [...Array(10).fill("0.2"), ...Array(10).fill("5")].join(),
      },
    });
    const at = await setup.serve({ ORDERS_ROLES: "api,maintenance,relay" });
    for (const step of steps) await killSenderAt(setup, at, step);

    const senders = await Promise.all([1, 2, 3, 4].map(() => setup.serve({ ORDERS_ROLES: "sender,reconciler" })));
    const before = setup.simulator.taken().length;
    await setup.simulator.fault("slow", "late", "lost-after", "error-after", "already", "busy", "slow", "late");
    await placeOrders(at, "last");
    await until("the broker has taken one", () => setup.simulator.taken().length > before, longWait);
    await setup.simulator.kill();
    senders[0]?.signal("SIGKILL");
    await setup.simulator.start();
    await setup.waitUntilAllEnded();

    const { rows } = await setup.db.query(
      `select count(*)::int as accepted from outbox_orders where status <> 'aborted'`,
    );
    const { broker, local } = await setup.takenOrders();
    expect(broker).toEqual([...new Set(broker)]);
    expect(broker).toEqual(local);
    expect(local).toHaveLength(rows[0].accepted);
    expect(rows[0].accepted).toBe((steps.length + 1) * ordersEach);
  },
);
