import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startSimulator } from "../../simulator/testing.ts";
import { anOrder, brokerConformance, type HarnessOptions } from "../conformance.ts";
import type { BrokerOrder } from "../index.ts";
import { openHttpBroker } from "./index.ts";
import { headerNames, sign } from "./protocol.ts";

const windowMs = 30_000;

interface Wanted extends HarnessOptions {
  readonly dedupes?: boolean;
  readonly args?: readonly string[];
}

let lastTrade = 0;

async function open({ dedupes = true, args = [], slowMs = 300 }: Wanted = {}) {
  const simulator = await startSimulator("--slow-ms", String(slowMs), ...args);
  const { url, secret } = simulator;
  const drifts: number[] = [];
  const onDrift = (ms: number) => void drifts.push(ms);
  const broker = openHttpBroker({ url, secret, dedupes, windowMs, limitsSlippage: true, onDrift });
  return {
    simulator,
    broker,
    drifts,
    fault: simulator.fault,
    fill: ({ clientOrderId }: BrokerOrder, trade: { readonly qty: string; readonly price: string }) =>
      simulator.fill(clientOrderId, { tradeId: `t-${++lastTrade}`, ...trade }),
    async [Symbol.asyncDispose]() {
      await broker[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
    },
  };
}

describe("a broker that deduplicates", () => brokerConformance(open));
describe("a broker that does not", () =>
  brokerConformance((options) => open({ ...options, dedupes: false, args: ["--no-dedupe"] })));

const patient = () => AbortSignal.timeout(60_000);

test("an order is not taken by a broker that cannot be connected to", async () => {
  await using harness = await open();
  const options = () => ({ timestamp: harness.broker.clock(), signal: patient() });
  await harness.simulator.kill();
  expect(await harness.broker.send(anOrder(), options())).toMatchObject({ kind: "not-taken", code: "BROKER_DOWN" });
  await harness.simulator.start();
  const order = anOrder();
  expect(await harness.broker.send(order, options())).toMatchObject({ kind: "taken" });
  await harness.simulator.kill();
  // The kept-alive connection may have carried the request.
  expect(await harness.broker.find(order.clientOrderId, { lastSentAt: new Date(), signal: patient() })).toMatchObject({
    kind: "unknown",
  });
  await harness.simulator.start();
  expect(await harness.broker.find(order.clientOrderId, { lastSentAt: new Date(), signal: patient() })).toMatchObject({
    kind: "taken",
  });
});

test("the outcome is unknown if the connection is cut after the request was sent", async () => {
  await using harness = new AsyncDisposableStack();
  const server = createTcpServer((socket) => socket.once("data", () => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  harness.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = harness.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const outcome = await broker.send(anOrder(), { timestamp: new Date(), signal: patient() });
  expect(outcome).toMatchObject({ kind: "unknown", code: "BROKER_TIMEOUT" });
});

test.each([
  [404, "nothing of the kind here"],
  [404, '{"code":"NOT_FOUND"}'],
  [200, "{}"],
  [200, "not json"],
  [502, '{"code":"NOT_TAKEN"}'],
  [503, "back in a minute"],
  [429, "slow down"],
])("a reply outside the broker's protocol proves nothing: %i %s", async (status, body) => {
  await using harness = new AsyncDisposableStack();
  const server = createServer((_, response) => response.writeHead(status).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  harness.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = harness.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const order = anOrder();
  expect((await broker.send(order, { timestamp: new Date(), signal: patient() })).kind).toBe("unknown");
  const longAgo = new Date(0);
  expect((await broker.find(order.clientOrderId, { lastSentAt: longAgo, signal: patient() })).kind).toBe("unknown");
  expect((await broker.cancel(order.clientOrderId, patient())).kind).toBe("unknown");
  expect((await broker.fills(order.clientOrderId, { after: null, signal: patient() })).kind).toBe("unknown");
  await expect(Array.fromAsync(broker.list(longAgo, patient()))).rejects.toThrow();
});

test("an endless reply is cut off, and the outcome is unknown", async () => {
  await using harness = new AsyncDisposableStack();
  const server = createServer((_, response) => {
    const more = () => {
      while (response.write("x".repeat(65_536)));
      response.once("drain", more);
    };
    more();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  harness.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = harness.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const outcome = await broker.send(anOrder(), { timestamp: new Date(), signal: patient() });
  expect(outcome).toMatchObject({ kind: "unknown", reason: expect.stringContaining("longer than") });
});

test("without a window, an order that is not found may still be taken", async () => {
  await using harness = await open({ dedupes: false });
  const { url, secret } = harness.simulator;
  await using broker = openHttpBroker({ url, secret, dedupes: false, windowMs: 0, limitsSlippage: true });
  const longAgo = { lastSentAt: new Date(0), signal: patient() };
  expect(await broker.find("tdk-unknown", longAgo)).toMatchObject({ kind: "unknown" });
});

test("a market order with max_slippage_bps is not sent to a broker that does not limit slippage", async () => {
  await using harness = await open();
  const { url, secret } = harness.simulator;
  await using broker = openHttpBroker({ url, secret, dedupes: true, windowMs, limitsSlippage: false });
  const send = (more: Parameters<typeof anOrder>[0]) =>
    broker.send(anOrder(more), { timestamp: broker.clock(), signal: patient() });
  expect(await send({ maxSlippageBps: 10_000 })).toMatchObject({
    kind: "rejected",
    reason: expect.stringMatching(/^not sent: /),
  });
  expect(harness.simulator.entries()).toEqual([]);
  expect(await send({ maxSlippageBps: 0, price: "100" })).toMatchObject({ kind: "taken" });
  expect(await send({})).toMatchObject({ kind: "taken" });
});

test("a broker's clock that is hours ahead is measured with the first reply", async () => {
  const aheadMs = 2 * 3_600_000;
  await using harness = await open({ args: ["--clock-ahead-ms", String(aheadMs)] });
  const { broker, drifts } = harness;
  const send = () => broker.send(anOrder(), { timestamp: broker.clock(), signal: patient() });
  expect(await send()).toMatchObject({ kind: "not-taken", code: "INTERNAL_ERROR" });
  expect(Math.abs((drifts[0] ?? 0) - aheadMs)).toBeLessThan(30_000);
  expect(await send()).toMatchObject({ kind: "taken" });
});

test("the broker's clock is measured before the first order, so an order without a reply is resolved by the window", async () => {
  await using harness = await open({ args: ["--clock-ahead-ms=-3600000"] });
  const { broker } = harness;
  expect(await broker.measureClock(patient())).toBeUndefined();
  await harness.fault("lost-before");
  const order = anOrder();
  const timestamp = broker.clock();
  expect(await broker.send(order, { timestamp, signal: patient() })).toMatchObject({ kind: "unknown" });
  const [, sent] = harness.simulator.entries().filter((entry) => entry.kind === "request");
  expect(sent).toMatchObject({ method: "POST", timestamp: timestamp.getTime() });
  expect(Math.abs((sent?.at ?? 0) - timestamp.getTime())).toBeLessThan(windowMs);
});

test("the broker's clock stays unknown until the broker replies", async () => {
  await using harness = await open();
  await harness.simulator.kill();
  expect(await harness.broker.measureClock(patient())).toMatch(/^the broker's clock could not be measured: /);
  await harness.simulator.start();
  expect(await harness.broker.measureClock(patient())).toBeUndefined();
  await harness.simulator.kill();
  expect(await harness.broker.measureClock(patient())).toBeUndefined();
});

test("a change of the system's time does not change the broker's time", async () => {
  await using harness = await open();
  await harness.broker.measureClock(patient());
  const before = harness.broker.clock().getTime();
  vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(harness.broker.clock().getTime() - before).toBeLessThan(600_000);
});

test("the signature does not change between versions", () => {
  const request = { method: "POST", path: "/orders", timestamp: 1_767_225_600_000, nonce: "n", body: '{"a":1}' };
  expect(sign("secret", request)).toMatchInlineSnapshot(
    `"f3e7fd2e5935f1a04d0b4a516b1630f38af43b1d2debf991b547e91a7c3345bd"`,
  );
});

test("the simulator refuses a forged request and a replayed one", async () => {
  await using harness = await open();
  const { url, secret } = harness.simulator;
  const call = async (key: string, nonce: string) => {
    const request = { method: "GET", path: "/orders/x", timestamp: Date.now(), nonce, body: "" };
    const headers = {
      [headerNames.timestamp]: String(request.timestamp),
      [headerNames.nonce]: nonce,
      [headerNames.signature]: sign(key, request),
    };
    const response = await fetch(new URL("/orders/x", url), { headers });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  expect(await call("another secret", "one")).toEqual([401, "BAD_SIGNATURE"]);
  expect(await call(secret, "one")).toEqual([404, "NOT_FOUND"]);
  expect(await call(secret, "one")).toEqual([401, "NONCE_USED"]);
  await harness.simulator.kill();
  await harness.simulator.start();
  expect(await call(secret, "one")).toEqual([401, "NONCE_USED"]);
});
