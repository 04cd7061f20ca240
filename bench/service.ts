/** Program: runs the service that its argument names and sends its URL to the parent process. */
import * as account from "@todoke/account";
import * as entitlement from "@todoke/entitlement";
import * as gateway from "@todoke/gateway-bff";
import type { EventBus } from "@todoke/kernel/bus";
import { done } from "@todoke/kernel/worker";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import * as orders from "@todoke/orders";
import * as points from "@todoke/points";
import { startGuarded, startHello, startPlain } from "./baselines.ts";
import { openBus as openBusAt } from "./buses.ts";

/** Discards all events, so that only the API and its commit are measured. */
const discardingBus: EventBus = {
  publish: async (events) => events.map(() => done),
  subscribe: () => Promise.reject(new Error("this bus has no subscriptions")),
  check: async () => ({ engine: "none", warnings: [] }),
  async [Symbol.asyncDispose]() {},
};

async function openBus(name: string): Promise<EventBus> {
  const url = process.env.EVENT_BUS_URL;
  return url === undefined ? discardingBus : openBusAt(url, name);
}

const serviceStarters: Record<string, () => Promise<AsyncDisposable & { readonly url: string }>> = {
  entitlement: () => entitlement.start(process.env, { openBus }),
  notification: () => notification.start(process.env, { openBus }),
  account: () => account.start(process.env, { openBus }),
  matchmaking: () => matchmaking.start(process.env, { openBus }),
  orders: () => orders.start(process.env, { openBus }),
  "gateway-bff": () => gateway.start(process.env, { openBus }),
  points: () => points.start(process.env, { openBus }),
  plain: () => startPlain(process.env.DATABASE_URL ?? ""),
  hello: () => startHello(),
  guarded: () => startGuarded(process.env.DATABASE_URL ?? "", process.env.BENCH_SECRET ?? ""),
};

const start = serviceStarters[process.argv[2] ?? ""];
if (!start) throw new Error(`expected one of ${Object.keys(serviceStarters).join(", ")}`);
await using service = await start();
process.send?.(service.url);
// Replies to any message with the CPU time used so far, in microseconds.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
const stop = Promise.withResolvers<void>();
process.once("disconnect", stop.resolve);
await stop.promise;
