/**
 * The recording broker under kill -9: senders die at every step, answers are lost, the broker is killed, and four senders
 * go on. What the broker has taken is what was accepted and not given up, each once: whether it dedupes or not.
 */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { dyingAt, type OrdersSetup, openOrders, orderOf, patient, place } from "./orders.ts";
import type { Serving } from "./serving.ts";

/** Each dies when it gets there for the second time, so that something else is under way. */
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

async function placeSome(at: Serving, name: string): Promise<void> {
  const placed = Array.from({ length: ordersEach }, (_, n) => place(at, orderOf(`${name}-${n}`)));
  expect((await Promise.all(placed)).map(({ status }) => status)).toEqual(Array(ordersEach).fill(201));
}

async function dieAt(setup: OrdersSetup, at: Serving, step: string): Promise<void> {
  // Doubts, so that there is something to ask about.
  await setup.simulator.fault("lost-after", "lost-before", "lost-after");
  const doomed = await setup.launch({ ORDERS_ROLES: "sender", ...dyingAt(step, 2) });
  let isOver = false;
  doomed.exited.then(() => (isOver = true));
  await placeSome(at, step);
  await until(`a sender dies at ${step}`, () => isOver, patient);
}

test.each([true, false])("a broker that dedupes (%s) takes every order once", { timeout: 900_000 }, async (dedupes) => {
  // Every death is an attempt: none may be the last one.
  await using setup = await openOrders({
    dedupes,
    windowMs: 4_000,
    simulator: ["--slow-ms", "300"],
    settings: {
      // Short, so that what a dead one held is soon another's.
      ORDERS_LEASE_MS: "4000",
      ORDERS_BROKER_TIMEOUT_MS: "2000",
      // A machine that is too busy for these times costs attempts as well: the last ones are far between.
      ORDERS_BACKOFF_SECONDS: [...Array(10).fill("0.2"), ...Array(10).fill("5")].join(),
    },
  });
  const at = await setup.serve({ ORDERS_ROLES: "api,maintenance,relay" });
  for (const step of steps) await dieAt(setup, at, step);

  const senders = await Promise.all([1, 2, 3, 4].map(() => setup.serve({ ORDERS_ROLES: "sender,reconciler" })));
  const before = setup.simulator.taken().length;
  await setup.simulator.fault("slow", "late", "lost-after", "error-after", "already", "busy", "slow", "late");
  await placeSome(at, "last");
  await until("the broker is at it", () => setup.simulator.taken().length > before, patient);
  await setup.simulator.kill();
  senders[0]?.signal("SIGKILL");
  await setup.simulator.start();
  await setup.untilAllEnded();

  const { rows } = await setup.db.query(
    `select count(*)::int as accepted from outbox_orders where status <> 'aborted'`,
  );
  const { theirs, ours } = await setup.books();
  expect(theirs).toEqual([...new Set(theirs)]);
  expect(theirs).toEqual(ours);
  expect(ours).toHaveLength(rows[0].accepted);
  expect(rows[0].accepted).toBe((steps.length + 1) * ordersEach);
});
