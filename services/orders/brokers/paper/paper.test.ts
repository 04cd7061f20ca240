import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { anOrder, brokerConformance, type HarnessOptions } from "../conformance.ts";
import { type Fault, faultPlan } from "../faults.ts";
import { openPaperBroker, paperMigrations } from "./index.ts";

async function open({ slowMs = 300 }: HarnessOptions = {}) {
  const t = await testDatabase({ schema: "paper_broker", sets: [paperMigrations] });
  const plan = faultPlan();
  const broker = await openPaperBroker({ db: t.db, plan, slowMs });
  return {
    ...t,
    broker,
    async fault(...wanted: readonly Fault[]) {
      plan.queue(...wanted);
    },
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
