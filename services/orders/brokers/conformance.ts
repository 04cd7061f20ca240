/** What every broker behind the port must do, whichever it is. Each adapter's test runs it on a stage of its own. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Fault } from "./faults.ts";
import type { Broker, BrokerOrder, BrokerResult, SendOutcome } from "./index.ts";

export interface Stage extends AsyncDisposable {
  readonly broker: Broker;
  /** What goes wrong with the orders that come next. */
  fault(...wanted: readonly Fault[]): Promise<void>;
}

export interface StageOptions {
  /** How long slow and late answers take. */
  readonly slowMs?: number;
}

let last = 0;

export function anOrder(more: Partial<BrokerOrder> = {}): BrokerOrder {
  const clientOrderId = `tdk-${process.pid}-${++last}`;
  const plain = { instrument: "USDJPY", side: "BUY", qty: "1.50", price: null, timeInForce: "IOC" } as const;
  return { clientOrderId, ...plain, maxSlippageBps: null, ...more };
}

export function brokerConformance(open: (options?: StageOptions) => Promise<Stage>): void {
  const patient = () => AbortSignal.timeout(60_000);
  const send = ({ broker }: Stage, order: BrokerOrder, signal = patient()) =>
    broker.send(order, { stampedAt: broker.clock(), signal });
  /** Every stage has a window of less than a minute. */
  const inMinutes = ({ broker }: Stage, minutes: number) => new Date(broker.clock().getTime() + minutes * 60_000);
  const find = ({ broker }: Stage, order: BrokerOrder, lastSentAt = broker.clock()) =>
    broker.find(order.clientOrderId, { lastSentAt, signal: patient() });

  test("an order that is taken is answered with what became of it, and found again by our own name for it", async () => {
    await using stage = await open();
    const order = anOrder();
    const sent = await send(stage, order);
    expect(sent).toMatchObject({ kind: "taken", result: { clientOrderId: order.clientOrderId, status: "filled" } });
    const { result, evidence } = sent as Extract<SendOutcome, { kind: "taken" }>;
    expect(Number(result.qty)).toBe(1.5);
    expect(JSON.parse(evidence)).toMatchObject({ client_order_id: order.clientOrderId });
    expect(await find(stage, order)).toEqual({ kind: "taken", result, evidence: expect.any(String) });
  });

  test.each(["lost-after", "error-after"] as const)(
    "%s: unknown, and asking finds that it was taken",
    async (fault) => {
      await using stage = await open();
      await stage.fault(fault);
      const order = anOrder();
      expect(await send(stage, order)).toMatchObject({ kind: "unknown" });
      expect(await find(stage, order)).toMatchObject({ kind: "taken" });
    },
  );

  test.each(["lost-before", "error-before"] as const)(
    "%s: unknown, not there yet, and never once the window is over",
    async (fault) => {
      await using stage = await open();
      await stage.fault(fault);
      const order = anOrder();
      expect(await send(stage, order)).toMatchObject({ kind: "unknown" });
      expect(await find(stage, order, inMinutes(stage, 1))).toEqual({ kind: "not-yet" });
      expect(await find(stage, order, inMinutes(stage, -1))).toEqual({ kind: "never" });
    },
  );

  test("an answer that takes too long is unknown, though the order was taken", async () => {
    // Longer than anybody waits for anything here: what ends it is our patience.
    await using stage = await open({ slowMs: 600_000 });
    await stage.fault("slow");
    const order = anOrder();
    const cut = new AbortController();
    const sending = send(stage, order, cut.signal);
    await until("it is taken", async () => (await find(stage, order)).kind === "taken");
    cut.abort();
    expect(await sending).toMatchObject({ kind: "unknown", code: "BROKER_TIMEOUT" });
  });

  test("an order that is taken late is found as soon as it is", async () => {
    await using stage = await open();
    await stage.fault("late");
    const order = anOrder();
    const sending = send(stage, order);
    await until("it is taken", async () => (await find(stage, order)).kind === "taken");
    expect((await sending).kind).toBe("taken");
  });

  test("an order whose timestamp is older than the window is never taken", async () => {
    await using stage = await open();
    const order = anOrder();
    const stampedAt = inMinutes(stage, -1);
    expect(await stage.broker.send(order, { stampedAt, signal: patient() })).toMatchObject({ kind: "not-taken" });
    expect(await find(stage, order, stampedAt)).toEqual({ kind: "never" });
  });

  test("a refusal for good is told with why, and found as such", async () => {
    await using stage = await open();
    await stage.fault("reject");
    const order = anOrder();
    expect(await send(stage, order)).toMatchObject({ kind: "rejected", why: "it was told to reject this one" });
    expect(await find(stage, order)).toMatchObject({ kind: "rejected" });
  });

  test.each(["BUY", "SELL"] as const)(
    "%s at the market's price: filled within its max_slippage_bps, and rejected where the market is further away",
    async (side) => {
      await using stage = await open();
      const [near, far] = [anOrder({ side, maxSlippageBps: 5 }), anOrder({ side, maxSlippageBps: 4 })];
      expect(await send(stage, near)).toMatchObject({ kind: "taken", result: { status: "filled" } });
      const why = "the market is further away than max_slippage_bps";
      expect(await send(stage, far)).toMatchObject({ kind: "rejected", why });
      expect(await find(stage, far)).toMatchObject({ kind: "rejected", why });
      const limited = anOrder({ side, price: side === "BUY" ? "10000" : "0.01", maxSlippageBps: 0 });
      expect(await send(stage, limited)).toMatchObject({ kind: "taken", result: { status: "filled" } });
    },
  );

  test("a refusal for now says that nothing was taken, and when to come back", async () => {
    await using stage = await open();
    await stage.fault("rate-limited", "busy");
    const order = anOrder();
    expect(await send(stage, order)).toMatchObject({
      kind: "not-taken",
      code: "BROKER_RATE_LIMITED",
      retryAfterMs: 1_000,
    });
    expect(await send(stage, order)).toMatchObject({ kind: "not-taken", code: "BROKER_DOWN" });
    expect(await send(stage, order)).toMatchObject({ kind: "taken" });
  });

  test("what a broker has already is told apart, and asking tells what became of it", async () => {
    await using stage = await open();
    await stage.fault("already");
    const order = anOrder();
    expect(await send(stage, order)).toMatchObject({ kind: "already" });
    expect(await find(stage, order)).toMatchObject({ kind: "taken" });
  });

  test("a broker that dedupes takes an order once, however often it is sent at once", async () => {
    await using stage = await open();
    if (!stage.broker.dedupes) return;
    const order = anOrder();
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => send(stage, order)));
    expect(outcomes.filter((outcome) => outcome.kind === "taken")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === "already")).toHaveLength(4);
  });

  test("a cancel tells whether it came in time", async () => {
    await using stage = await open();
    const open_ = anOrder({ price: "0.01", timeInForce: "GTC" });
    const filled = anOrder();
    for (const order of [open_, filled]) await send(stage, order);
    const cancel = async ({ clientOrderId }: BrokerOrder) => (await stage.broker.cancel(clientOrderId, patient())).kind;
    expect(await cancel(open_)).toBe("cancelled");
    expect(await cancel(open_)).toBe("cancelled");
    expect(await cancel(filled)).toBe("too-late");
    expect(await cancel(anOrder())).toBe("not-found");
    expect(await find(stage, open_)).toMatchObject({ kind: "taken", result: { status: "cancelled" } });
  });

  test("the list is what was taken, and nothing else", async () => {
    await using stage = await open();
    await stage.fault("lost-after", "lost-before", "reject");
    const orders = Array.from({ length: 120 }, () => anOrder());
    for (const order of orders) await send(stage, order);
    const listed: BrokerResult[] = [];
    for await (const result of stage.broker.list(new Date(0), patient())) listed.push(result);
    const wanted = orders.filter((_, place) => place !== 1 && place !== 2).map((order) => order.clientOrderId);
    expect(listed.map((result) => result.clientOrderId)).toEqual(wanted);
    const later = new Date(Date.now() + 3_600_000);
    for await (const result of stage.broker.list(later, patient())) expect(result).toBeUndefined();
  });
}
