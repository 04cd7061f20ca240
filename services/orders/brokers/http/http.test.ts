import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, expect, test } from "vitest";
import { startSimulator } from "../../simulator/testing.ts";
import { anOrder, brokerConformance, type StageOptions } from "../conformance.ts";
import { openHttpBroker } from "./index.ts";
import { headerNames, signatureOf } from "./protocol.ts";

const windowMs = 30_000;

interface Wanted extends StageOptions {
  readonly dedupes?: boolean;
  readonly args?: readonly string[];
}

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
    async [Symbol.asyncDispose]() {
      await broker[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
    },
  };
}

describe("a broker that dedupes", () => brokerConformance(open));
describe("a broker that does not", () =>
  brokerConformance((options) => open({ ...options, dedupes: false, args: ["--no-dedupe"] })));

const patient = () => AbortSignal.timeout(60_000);

test("a broker that nobody can connect to has taken nothing, and that is known", async () => {
  await using stage = await open();
  const options = () => ({ stampedAt: stage.broker.clock(), signal: patient() });
  await stage.simulator.kill();
  expect(await stage.broker.send(anOrder(), options())).toMatchObject({ kind: "not-taken", code: "BROKER_DOWN" });
  await stage.simulator.start();
  const order = anOrder();
  expect(await stage.broker.send(order, options())).toMatchObject({ kind: "taken" });
  await stage.simulator.kill();
  // The connection of before was there: whether the request left is not known.
  expect(await stage.broker.find(order.clientOrderId, { lastSentAt: new Date(), signal: patient() })).toMatchObject({
    kind: "unknown",
  });
  await stage.simulator.start();
  expect(await stage.broker.find(order.clientOrderId, { lastSentAt: new Date(), signal: patient() })).toMatchObject({
    kind: "taken",
  });
});

test("a connection that is cut after the bytes have left is unknown", async () => {
  await using stage = new AsyncDisposableStack();
  const server = createTcpServer((socket) => socket.once("data", () => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stage.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = stage.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const outcome = await broker.send(anOrder(), { stampedAt: new Date(), signal: patient() });
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
])("what is not said in the broker's own words proves nothing: %i %s", async (status, body) => {
  await using stage = new AsyncDisposableStack();
  const server = createServer((_, response) => response.writeHead(status).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stage.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = stage.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const order = anOrder();
  expect((await broker.send(order, { stampedAt: new Date(), signal: patient() })).kind).toBe("unknown");
  const longAgo = new Date(0);
  expect((await broker.find(order.clientOrderId, { lastSentAt: longAgo, signal: patient() })).kind).toBe("unknown");
  expect((await broker.cancel(order.clientOrderId, patient())).kind).toBe("unknown");
  await expect(Array.fromAsync(broker.list(longAgo, patient()))).rejects.toThrow();
});

test("an answer without end is cut off, and is unknown", async () => {
  await using stage = new AsyncDisposableStack();
  const server = createServer((_, response) => {
    const more = () => {
      while (response.write("x".repeat(65_536)));
      response.once("drain", more);
    };
    more();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stage.defer(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const broker = stage.use(openHttpBroker({ url, secret: "s", dedupes: true, windowMs, limitsSlippage: true }));
  const outcome = await broker.send(anOrder(), { stampedAt: new Date(), signal: patient() });
  expect(outcome).toMatchObject({ kind: "unknown", why: expect.stringContaining("longer than") });
});

test("a broker that promises no window is never believed not to have an order", async () => {
  await using stage = await open({ dedupes: false });
  const { url, secret } = stage.simulator;
  await using careless = openHttpBroker({ url, secret, dedupes: false, windowMs: 0, limitsSlippage: true });
  const longAgo = { lastSentAt: new Date(0), signal: patient() };
  expect(await careless.find("tdk-nobody", longAgo)).toMatchObject({ kind: "unknown" });
});

test("a broker that does not limit slippage is not even sent an order at the market's price that is to be limited", async () => {
  await using stage = await open();
  const { url, secret } = stage.simulator;
  await using careless = openHttpBroker({ url, secret, dedupes: true, windowMs, limitsSlippage: false });
  const send = (more: Parameters<typeof anOrder>[0]) =>
    careless.send(anOrder(more), { stampedAt: careless.clock(), signal: patient() });
  expect(await send({ maxSlippageBps: 10_000 })).toMatchObject({
    kind: "rejected",
    why: expect.stringMatching(/^not sent: /),
  });
  expect(stage.simulator.entries()).toEqual([]);
  expect(await send({ maxSlippageBps: 0, price: "100" })).toMatchObject({ kind: "taken" });
  expect(await send({})).toMatchObject({ kind: "taken" });
});

test("a broker's clock that is hours ahead is noticed at the first answer and allowed for", async () => {
  const aheadMs = 2 * 3_600_000;
  await using stage = await open({ args: ["--clock-ahead-ms", String(aheadMs)] });
  const { broker, drifts } = stage;
  const send = () => broker.send(anOrder(), { stampedAt: broker.clock(), signal: patient() });
  expect(await send()).toMatchObject({ kind: "not-taken", code: "INTERNAL_ERROR" });
  expect(Math.abs((drifts[0] ?? 0) - aheadMs)).toBeLessThan(30_000);
  expect(await send()).toMatchObject({ kind: "taken" });
});

test("the signature is as it always was", () => {
  const request = { method: "POST", path: "/orders", timestamp: 1_767_225_600_000, nonce: "n", body: '{"a":1}' };
  expect(signatureOf("secret", request)).toMatchInlineSnapshot(
    `"f3e7fd2e5935f1a04d0b4a516b1630f38af43b1d2debf991b547e91a7c3345bd"`,
  );
});

test("the simulator refuses a forged request, and one that comes again", async () => {
  await using stage = await open();
  const { url, secret } = stage.simulator;
  const call = async (key: string, nonce: string) => {
    const request = { method: "GET", path: "/orders/x", timestamp: Date.now(), nonce, body: "" };
    const headers = {
      [headerNames.timestamp]: String(request.timestamp),
      [headerNames.nonce]: nonce,
      [headerNames.signature]: signatureOf(key, request),
    };
    const answer = await fetch(new URL("/orders/x", url), { headers });
    return [answer.status, ((await answer.json()) as { code: string }).code];
  };
  expect(await call("another secret", "one")).toEqual([401, "BAD_SIGNATURE"]);
  expect(await call(secret, "one")).toEqual([404, "NOT_FOUND"]);
  expect(await call(secret, "one")).toEqual([401, "NONCE_USED"]);
  await stage.simulator.kill();
  await stage.simulator.start();
  expect(await call(secret, "one")).toEqual([401, "NONCE_USED"]);
});
