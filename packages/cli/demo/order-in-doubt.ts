/**
 * Leaves an order in doubt: its broker takes the request and never answers, and later another broker is configured. Such an order
 * waits for an operator, for as long as it takes.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@todoke/client";
import { devKey } from "../dev-env.ts";
import { startServices } from "../run-services.ts";
import type { LoadedService } from "../select-services.ts";
import type { Env } from "../services.ts";
import type { StopSignal } from "../stop-signal.ts";

const pollMs = 100;
const key = "demo-in-doubt";

/** Before the services start: orders runs with the former broker until the order is in doubt. */
export async function leaveOrderInDoubt(loaded: readonly LoadedService[], env: Env, stop: StopSignal): Promise<void> {
  const orders = loaded.filter(({ entry }) => entry.name === "orders");
  if (orders.length === 0 || env.ORDERS_BROKER) return;
  await using broker = await startSilentBroker();
  const settings = {
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: broker.url,
    ORDERS_BROKER_SECRET: "of-the-former-broker",
    LOG_LEVEL: "silent", // That this broker does not answer is no news.
  };
  await using _running = await startServices(orders, { env: { ...env, ...settings }, stop });
  const todoke = createClient({ services: { orders: env.ORDERS_URL ?? "" }, apiKey: devKey });
  const order = { instrument: "BTC-USD", side: "BUY", qty: "0.25", price: "59000" } as const;
  await todoke.orders.accept({ ...order, order_id: key, requested_at: "2026-01-31T09:00:00Z" }, { key });
  for (;;) {
    stop.throwIfRequested();
    const { status } = await todoke.orders.getByKey({ idempotency_key: key });
    if (status !== "pending" && status !== "sending") return;
    await sleep(pollMs);
  }
}

/** It has the time, and nothing else to say. */
async function startSilentBroker() {
  const server = createServer((request, response) => {
    if (request.method === "POST") request.resume().once("end", () => request.socket.destroy());
    else response.writeHead(500).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
