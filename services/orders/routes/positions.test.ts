import { expect, test } from "vitest";
import { readInstruments } from "../instruments/index.ts";
import { bodyOf, createHarness } from "../testing.ts";

const limited = readInstruments(
  `instruments:
  BTC-USD: { min_qty: 0.1, step: 0.1, max_qty: 10, max_notional: 1000000, tick: 0.5, reference_price: 50000,
             max_position: 2, max_open_notional: 100000 }
  ETH-USD: { min_qty: 1, step: 1, max_qty: 100, max_notional: 1000000, reference_price: 3000 }
`,
  "limited.yaml",
);

type Harness = Awaited<ReturnType<typeof createHarness>>;

/** An order that the broker has taken and filled so far, as the workers write it. */
async function fill({ db }: Harness, key: string, { qty, execution }: { qty: string; execution: string }) {
  await db.query(
    `update outbox_orders set status = 'sending', lease_until = now() where idempotency_key = $1 and status = 'pending'`,
    [key],
  );
  await db.query(
    `update outbox_orders set status = 'succeeded', lease_until = null, done_at = now()
      where idempotency_key = $1 and status = 'sending'`,
    [key],
  );
  await db.query(
    `update outbox_orders set filled_qty = filled_qty + $2, execution = $3, version = version + 1 where idempotency_key = $1`,
    [key, qty, execution],
  );
}

test("positions follow fills, and open exposure follows orders until they end", async () => {
  await using t = await createHarness();
  const { order, get, cancel } = await t.process(t.db, { instruments: limited });
  const position = async () => (await get("/v1/orders/positions", "risk")).json().positions[0];
  expect((await get("/v1/orders/positions", "risk")).json()).toEqual({ positions: [] });
  await order(bodyOf("k1", { qty: "0.5", price: "40000", time_in_force: "GTC" }));
  await order(bodyOf("k2", { qty: "0.3", price: null, side: "SELL" }));
  expect(await position()).toEqual({
    adapter: "paper",
    instrument: "BTC-USD",
    position: "0",
    open_buy_qty: "0.5",
    open_sell_qty: "0.3",
    // A market order counts at the reference price.
    open_notional: "35000",
    max_position: "2",
    max_open_notional: "100000",
  });
  await fill(t, "k1", { qty: "0.2", execution: "open" });
  expect(await position()).toMatchObject({ position: "0.2", open_buy_qty: "0.3", open_notional: "27000" });
  await fill(t, "k1", { qty: "0.1", execution: "cancelled" });
  expect(await position()).toMatchObject({ position: "0.3", open_buy_qty: "0", open_notional: "15000" });
  expect((await cancel("k2")).statusCode).toBe(200);
  expect(await position()).toMatchObject({ position: "0.3", open_sell_qty: "0", open_notional: "0" });
  await order(bodyOf("k3", { qty: "0.4", side: "SELL" }));
  await fill(t, "k3", { qty: "0.4", execution: "filled" });
  expect(await position()).toMatchObject({ position: "-0.1", open_sell_qty: "0" });
});

test("an order that could exceed a limit of its instrument is refused; its key stays free", async () => {
  await using t = await createHarness();
  const { order, cancel } = await t.process(t.db, { instruments: limited });
  const codeOf = async (...args: Parameters<typeof bodyOf>) => {
    const response = await order(bodyOf(...args));
    return response.statusCode === 422 ? response.json().code : response.statusCode;
  };
  expect(await codeOf("k1", { qty: "1.5", price: "20000" })).toBe(201);
  expect(await codeOf("k2", { qty: "0.6", price: "20000" })).toBe("exposure-limit-exceeded");
  // The other side is limited on its own: nothing is sold yet.
  expect(await codeOf("k3", { qty: "2", price: "20000", side: "SELL" })).toBe(201);
  expect(await codeOf("k4", { qty: "0.1", price: "20000", side: "SELL" })).toBe("exposure-limit-exceeded");
  // 70,000 are open, of 100,000.
  expect(await codeOf("k5", { qty: "0.5", price: "70000" })).toBe("exposure-limit-exceeded");
  expect(await codeOf("k5", { qty: "0.5", price: "60000" })).toBe(201);
  // A replay needs no room.
  expect(await codeOf("k1", { qty: "1.5", price: "20000" })).toBe(200);
  expect(await codeOf("e1", { instrument: "ETH-USD", qty: 100, price: "9000" })).toBe(201);
  await cancel("k1");
  expect(await codeOf("k2", { qty: "0.6", price: "20000" })).toBe(201);
  const refused = await order(bodyOf("k6", { qty: "1", price: "20000" }));
  expect(refused.json()).toMatchObject({
    detail: "with all open orders filled, the position would be 2.1; max_position is 2.",
    errors: [{ field: "body.qty" }],
  });
});

test("what is held counts: with a long position, more can be sold and less bought", async () => {
  await using t = await createHarness();
  const { order } = await t.process(t.db, { instruments: limited });
  await order(bodyOf("k1", { qty: "1.5", price: "20000" }));
  await fill(t, "k1", { qty: "1.5", execution: "filled" });
  const statusOf = async (...args: Parameters<typeof bodyOf>) => (await order(bodyOf(...args))).statusCode;
  expect(await statusOf("k2", { qty: "0.6", price: "20000" })).toBe(422);
  expect(await statusOf("k3", { qty: "3.5", price: "20000", side: "SELL" })).toBe(201);
  expect(await statusOf("k4", { qty: "0.1", price: "20000", side: "SELL" })).toBe(422);
});

test("concurrent orders through several processes never exceed the limit together", async () => {
  await using t = await createHarness();
  const processes = await Promise.all([1, 2, 3].map(() => t.process(undefined, { instruments: limited })));
  const responses = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      (processes[n % 3] as (typeof processes)[number]).order(bodyOf(`k${n}`, { qty: "0.1", price: "20000" })),
    ),
  );
  const statuses = responses.map(({ statusCode }) => statusCode);
  expect(statuses.filter((status) => status === 201)).toHaveLength(20);
  expect(statuses.filter((status) => status === 422)).toHaveLength(40);
  const { rows } = await t.db.query(`select sum(open_buy_qty)::text as qty from positions`);
  expect(rows).toEqual([{ qty: "2.0" }]);
});

test("positions are for those who may see all orders", async () => {
  await using t = await createHarness();
  const { get } = await t.process();
  expect((await get("/v1/orders/positions", "desk")).statusCode).toBe(403);
  expect((await get("/v1/orders/positions", "auditor")).statusCode).toBe(200);
});
