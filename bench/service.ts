/**
 * One service as a process of its own; it tells its parent where it serves. Which one is its argument: plain, hello and
 * guarded are what the real ones are compared with.
 */
import * as account from "@todoke/account";
import * as entitlement from "@todoke/entitlement";
import * as gateway from "@todoke/gateway-bff";
import type { EventBus } from "@todoke/kernel/bus";
import { done } from "@todoke/kernel/worker";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import * as orders from "@todoke/orders";
import * as points from "@todoke/points";
import { openBus as openBusAt } from "./buses.ts";
import { startGuarded, startHello, startPlain } from "./plain.ts";

/** Takes everything at once: what is measured then is the edge and the commit. */
const bottomless: EventBus = {
  publish: async (events) => events.map(() => done),
  subscribe: () => Promise.reject(new Error("nothing is consumed here")),
  check: async () => ({ engine: "none", warnings: [] }),
  async [Symbol.asyncDispose]() {},
};

async function openBus(name: string): Promise<EventBus> {
  const url = process.env.EVENT_BUS_URL;
  return url === undefined ? bottomless : openBusAt(url, name);
}

const starts: Record<string, () => Promise<AsyncDisposable & { readonly url: string }>> = {
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

const start = starts[process.argv[2] ?? ""];
if (!start) throw new Error(`one of ${Object.keys(starts).join(", ")} is expected`);
await using service = await start();
process.send?.(service.url);
// Asked anything, it says how much of the processor it has used so far, in microseconds.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
const stop = Promise.withResolvers<void>();
process.once("disconnect", stop.resolve);
await stop.promise;
