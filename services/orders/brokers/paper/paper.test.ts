import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { anOrder, brokerConformance, type HarnessOptions } from "../conformance.ts";
import { type Fault, faultPlan } from "../faults.ts";
import type { BrokerOrder } from "../index.ts";
import { type Market, openPaperBroker, paperMigrations } from "./index.ts";
import { fillPaperOrder, type Trade } from "./testing.ts";

interface Wanted extends HarnessOptions {
  readonly markets?: ReadonlyMap<string, Market>;
  readonly seed?: number;
}

async function open({ slowMs = 300, ...market }: Wanted = {}) {
  const t = await testDatabase({ schema: "paper_broker", sets: [paperMigrations] });
  const plan = faultPlan();
  const broker = await openPaperBroker({ db: t.db, plan, slowMs, ...market });
  return {
    ...t,
    broker,
    async fault(...wanted: readonly Fault[]) {
      plan.queue(...wanted);
    },
    fill: ({ clientOrderId }: BrokerOrder, trade: Trade) => fillPaperOrder(t.db, clientOrderId, trade),
  };
}

brokerConformance(open);

test("a market order is filled; a limit order that the market does not meet stays open or expires", async () => {
  await using harness = await open();
  const { broker } = harness;
  const sent = async (more: Parameters<typeof anOrder>[0]) => {
    const options = { timestamp: broker.clock(), signal: AbortSignal.timeout(60_000) };
    const outcome = await broker.send(anOrder(more), options);
    return outcome.kind === "taken" ? outcome.result : outcome;
  };
  const bought = await sent({});
  const sold = await sent({ side: "SELL" });
  if (!("price" in bought) || !("price" in sold)) throw new Error("not taken");
  expect(Number(bought.price)).toBeGreaterThan(Number(sold.price));
  expect(await sent({ price: "0.01" })).toMatchObject({ status: "expired", filledQty: "0", price: null });
  expect(await sent({ price: "0.01", timeInForce: "GTC" })).toMatchObject({ status: "open", filledQty: "0" });
  expect(await sent({ price: "0.01", side: "SELL" })).toMatchObject({ status: "filled", price: sold.price });
});

test("the same seed gives the same faults, at the given chances", () => {
  const chances = new Map([["busy", 0.2] as const, ["lost-after", 0.3] as const]);
  const draw = (seed: number) => Array.from({ length: 2_000 }, () => plans[seed]?.next());
  const plans = [faultPlan(chances, 7), faultPlan(chances, 7), faultPlan(chances, 8)];
  const [one, same, other] = [draw(0), draw(1), draw(2)];
  expect(same).toEqual(one);
  expect(other).not.toEqual(one);
  expect(one.filter((fault) => fault === "busy").length).toBeGreaterThan(300);
  expect(one.filter((fault) => fault === undefined).length).toBeGreaterThan(800);
});

test("fill prices are within 15 basis points of the reference price, multiples of the tick, and the same for the same seed", async () => {
  const markets = new Map([["BTC-USD", { referencePrice: "60000", tick: "0.01" }]]);
  const orders = Array.from({ length: 100 }, (_, n) =>
    anOrder({ instrument: "BTC-USD", side: n % 2 ? "BUY" : "SELL" }),
  );
  const pricesBy = async (seed: number) => {
    await using harness = await open({ markets, seed });
    const { broker } = harness;
    const prices: string[] = [];
    for (const order of orders) {
      const sent = await broker.send(order, { timestamp: broker.clock(), signal: AbortSignal.timeout(60_000) });
      prices.push(sent.kind === "taken" ? String(sent.result.price) : sent.kind);
    }
    return prices;
  };
  const prices = await pricesBy(1);
  for (const price of prices) {
    expect(price).toMatch(/^\d+(\.\d{1,2})?$/);
    expect(Math.abs(Number(price) - 60_000)).toBeLessThanOrEqual(60_000 * 0.0015 + 1);
  }
  // The market moves between orders.
  expect(new Set(prices).size).toBeGreaterThan(50);
  expect(await pricesBy(1)).toEqual(prices);
  expect(await pricesBy(2)).not.toEqual(prices);
});

test("a resting order is filled in two parts once the market meets its price, the same way for the same seed", async () => {
  const markets = new Map([["BTC-USD", { referencePrice: "60000", tick: "0.01", step: "0.1" }]]);
  // The prices follow from the seed and the ID: at first the market is above this price.
  const order = anOrder({
    clientOrderId: "tdk-resting",
    instrument: "BTC-USD",
    qty: "0.5",
    price: "59975",
    timeInForce: "GTC",
  });
  const run = async () => {
    await using harness = await open({ markets, seed: 5 });
    const { broker } = harness;
    const signal = AbortSignal.timeout(60_000);
    await broker.send(order, { timestamp: broker.clock(), signal });
    for (let n = 0; n < 200; n++) {
      const found = await broker.fills(order.clientOrderId, { after: null, signal });
      if (found.kind === "fills" && found.order.status === "filled")
        return found.fills.map(({ tradeId, qty, price }) => ({ tradeId, qty, price }));
    }
    return [];
  };
  const fills = await run();
  expect(fills).toMatchObject([
    { tradeId: "paper-1-1", qty: "0.2" },
    { tradeId: "paper-1-2", qty: "0.3" },
  ]);
  for (const { price } of fills) expect(Number(price)).toBeLessThanOrEqual(59_975);
  expect(await run()).toEqual(fills);
});
