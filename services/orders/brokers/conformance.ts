/** The conformance suite of the broker port. The test of each adapter runs it with a harness of its own. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Fault } from "./faults.ts";
import type { Broker, BrokerOrder, BrokerResult, SendOutcome } from "./index.ts";

export interface Harness extends AsyncDisposable {
  readonly broker: Broker;
  /** Injects faults into the next orders, one each. */
  fault(...wanted: readonly Fault[]): Promise<void>;
  /** Fills a part of an open order. */
  fill(order: BrokerOrder, trade: { readonly qty: string; readonly price: string }): Promise<void>;
}

export interface HarnessOptions {
  /** The delay of slow and late replies. */
  readonly slowMs?: number;
}

let last = 0;

export function anOrder(more: Partial<BrokerOrder> = {}): BrokerOrder {
  const clientOrderId = `tdk-${process.pid}-${++last}`;
  const plain = { instrument: "USDJPY", side: "BUY", qty: "1.50", price: null, timeInForce: "IOC" } as const;
  return { clientOrderId, ...plain, maxSlippageBps: null, ...more };
}

export function brokerConformance(open: (options?: HarnessOptions) => Promise<Harness>): void {
  const patient = () => AbortSignal.timeout(60_000);
  const send = ({ broker }: Harness, order: BrokerOrder, signal = patient()) =>
    broker.send(order, { timestamp: broker.clock(), signal });
  /** Every harness has a window of less than a minute. */
  const inMinutes = ({ broker }: Harness, minutes: number) => new Date(broker.clock().getTime() + minutes * 60_000);
  const find = ({ broker }: Harness, order: BrokerOrder, lastSentAt = broker.clock()) =>
    broker.find(order.clientOrderId, { lastSentAt, signal: patient() });

  test("a taken order is returned with its result, and found by its client order ID", async () => {
    await using harness = await open();
    const order = anOrder();
    const sent = await send(harness, order);
    expect(sent).toMatchObject({ kind: "taken", result: { clientOrderId: order.clientOrderId, status: "filled" } });
    const { result, evidence } = sent as Extract<SendOutcome, { kind: "taken" }>;
    expect(Number(result.qty)).toBe(1.5);
    expect(JSON.parse(evidence)).toMatchObject({ client_order_id: order.clientOrderId });
    expect(await find(harness, order)).toEqual({ kind: "taken", result, evidence: expect.any(String) });
  });

  test.each(["lost-after", "error-after"] as const)(
    "%s: the outcome is unknown, and the order is found as taken",
    async (fault) => {
      await using harness = await open();
      await harness.fault(fault);
      const order = anOrder();
      expect(await send(harness, order)).toMatchObject({ kind: "unknown" });
      expect(await find(harness, order)).toMatchObject({ kind: "taken" });
    },
  );

  test.each(["lost-before", "error-before"] as const)(
    "%s: the outcome is unknown, then not taken yet, and not taken after the window",
    async (fault) => {
      await using harness = await open();
      await harness.fault(fault);
      const order = anOrder();
      expect(await send(harness, order)).toMatchObject({ kind: "unknown" });
      expect(await find(harness, order, inMinutes(harness, 1))).toEqual({ kind: "not-taken-yet" });
      expect(await find(harness, order, inMinutes(harness, -1))).toEqual({ kind: "not-taken" });
    },
  );

  test("the outcome is unknown after the timeout, though the order was taken", async () => {
    // Longer than the test: only the abort ends it.
    await using harness = await open({ slowMs: 600_000 });
    await harness.fault("slow");
    const order = anOrder();
    const cut = new AbortController();
    const sending = send(harness, order, cut.signal);
    await until("it is taken", async () => (await find(harness, order)).kind === "taken");
    cut.abort();
    expect(await sending).toMatchObject({ kind: "unknown", code: "BROKER_TIMEOUT" });
  });

  test("an order that is taken late is found then", async () => {
    await using harness = await open();
    await harness.fault("late");
    const order = anOrder();
    const sending = send(harness, order);
    await until("it is taken", async () => (await find(harness, order)).kind === "taken");
    expect((await sending).kind).toBe("taken");
  });

  test("an order with a timestamp older than the window is not taken", async () => {
    await using harness = await open();
    const order = anOrder();
    const stampedAt = inMinutes(harness, -1);
    expect(await harness.broker.send(order, { timestamp: stampedAt, signal: patient() })).toMatchObject({
      kind: "not-taken",
    });
    expect(await find(harness, order, stampedAt)).toEqual({ kind: "not-taken" });
  });

  test("a rejection has a reason, and is found as a rejection", async () => {
    await using harness = await open();
    await harness.fault("reject");
    const order = anOrder();
    expect(await send(harness, order)).toMatchObject({ kind: "rejected", reason: "a fault rejects this order" });
    expect(await find(harness, order)).toMatchObject({ kind: "rejected" });
  });

  test.each(["BUY", "SELL"] as const)(
    "%s market order: filled within its max_slippage_bps, else rejected",
    async (side) => {
      await using harness = await open();
      const [near, far] = [anOrder({ side, maxSlippageBps: 5 }), anOrder({ side, maxSlippageBps: 4 })];
      expect(await send(harness, near)).toMatchObject({ kind: "taken", result: { status: "filled" } });
      const reason = "the slippage would exceed max_slippage_bps";
      expect(await send(harness, far)).toMatchObject({ kind: "rejected", reason });
      expect(await find(harness, far)).toMatchObject({ kind: "rejected", reason });
      const limited = anOrder({ side, price: side === "BUY" ? "10000" : "0.01", maxSlippageBps: 0 });
      expect(await send(harness, limited)).toMatchObject({ kind: "taken", result: { status: "filled" } });
    },
  );

  test("a temporary refusal is not taken, with Retry-After", async () => {
    await using harness = await open();
    await harness.fault("rate-limited", "busy");
    const order = anOrder();
    expect(await send(harness, order)).toMatchObject({
      kind: "not-taken",
      code: "BROKER_RATE_LIMITED",
      retryAfterMs: 1_000,
    });
    expect(await send(harness, order)).toMatchObject({ kind: "not-taken", code: "BROKER_DOWN" });
    expect(await send(harness, order)).toMatchObject({ kind: "taken" });
  });

  test("an order that the broker already has is reported as such, and found as taken", async () => {
    await using harness = await open();
    await harness.fault("already");
    const order = anOrder();
    expect(await send(harness, order)).toMatchObject({ kind: "already-taken" });
    expect(await find(harness, order)).toMatchObject({ kind: "taken" });
  });

  test("a broker that deduplicates takes concurrent requests for an order once", async () => {
    await using harness = await open();
    if (!harness.broker.dedupes) return;
    const order = anOrder();
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => send(harness, order)));
    expect(outcomes.filter((outcome) => outcome.kind === "taken")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === "already-taken")).toHaveLength(4);
  });

  test("a cancel reports whether it came in time", async () => {
    await using harness = await open();
    const open_ = anOrder({ price: "0.01", timeInForce: "GTC" });
    const filled = anOrder();
    for (const order of [open_, filled]) await send(harness, order);
    const cancel = async ({ clientOrderId }: BrokerOrder) =>
      (await harness.broker.cancel(clientOrderId, patient())).kind;
    expect(await cancel(open_)).toBe("cancelled");
    expect(await cancel(open_)).toBe("cancelled");
    expect(await cancel(filled)).toBe("too-late");
    expect(await cancel(anOrder())).toBe("not-found");
    expect(await find(harness, open_)).toMatchObject({ kind: "taken", result: { status: "cancelled" } });
  });

  const fillsOf = ({ broker }: Harness, { clientOrderId }: BrokerOrder, after: string | null = null) =>
    broker.fills(clientOrderId, { after, signal: patient() });
  const expectFills = async (...args: Parameters<typeof fillsOf>) => {
    const found = await fillsOf(...args);
    if (found.kind !== "fills") throw new Error(`${found.kind}: ${found.reason}`);
    return found;
  };

  test("the fills of an order that is filled when it is taken add up to it", async () => {
    await using harness = await open();
    const order = anOrder();
    await send(harness, order);
    const { fills, order: result, hasMore } = await expectFills(harness, order);
    expect({ fills: fills.length, hasMore, status: result.status }).toEqual({
      fills: 1,
      hasMore: false,
      status: "filled",
    });
    expect(Number(fills[0]?.qty)).toBe(1.5);
    expect(Number(result.filledQty)).toBe(1.5);
  });

  test("the fills of a resting order are returned after a position, and again from the first, under the same trade IDs", async () => {
    await using harness = await open();
    const order = anOrder({ price: "0.01", timeInForce: "GTC" });
    await send(harness, order);
    expect(await expectFills(harness, order)).toMatchObject({ fills: [], position: null, order: { status: "open" } });
    await harness.fill(order, { qty: "0.25", price: "0.009" });
    const first = await expectFills(harness, order);
    expect(first).toMatchObject({
      fills: [{ qty: "0.25", price: "0.009" }],
      order: { status: "open", filledQty: "0.25" },
    });
    await harness.fill(order, { qty: "1.25", price: "0.01" });
    const second = await expectFills(harness, order, first.position);
    expect(second).toMatchObject({ fills: [{ qty: "1.25", price: "0.01" }], order: { status: "filled" } });
    expect(await expectFills(harness, order, second.position)).toMatchObject({ fills: [], position: second.position });
    const ids = [...first.fills, ...second.fills].map(({ tradeId }) => tradeId);
    expect((await expectFills(harness, order)).fills.map(({ tradeId }) => tradeId)).toEqual(ids);
    expect(new Set(ids).size).toBe(2);
  });

  test("a cancelled order keeps its fills, and an unknown order has none", async () => {
    await using harness = await open();
    const order = anOrder({ price: "0.01", timeInForce: "GTC" });
    await send(harness, order);
    await harness.fill(order, { qty: "0.5", price: "0.01" });
    await harness.broker.cancel(order.clientOrderId, patient());
    const { fills, order: result } = await expectFills(harness, order);
    expect(fills).toHaveLength(1);
    expect(result).toMatchObject({ status: "cancelled", filledQty: "0.5" });
    expect(await fillsOf(harness, anOrder())).toMatchObject({ kind: "not-found" });
  });

  test("the list contains exactly the orders that were taken", async () => {
    await using harness = await open();
    await harness.fault("lost-after", "lost-before", "reject");
    const orders = Array.from({ length: 120 }, () => anOrder());
    for (const order of orders) await send(harness, order);
    const listed: BrokerResult[] = [];
    for await (const result of harness.broker.list(new Date(0), patient())) listed.push(result);
    const wanted = orders.filter((_, index) => index !== 1 && index !== 2).map((order) => order.clientOrderId);
    expect(listed.map((result) => result.clientOrderId)).toEqual(wanted);
    const later = new Date(Date.now() + 3_600_000);
    for await (const result of harness.broker.list(later, patient())) expect(result).toBeUndefined();
  });
}
