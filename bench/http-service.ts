/** The entitlement service as a process of its own, for bench/http.ts: it tells its parent where it serves. */
import { start } from "@todoke/entitlement";
import type { EventBus } from "@todoke/kernel/bus";
import { done } from "@todoke/kernel/worker";

/** Takes everything at once: what is measured is the edge and the commit. */
const bottomless: EventBus = {
  publish: async (events) => events.map(() => done),
  subscribe: () => Promise.reject(new Error("nothing is consumed here")),
  check: async () => ({ engine: "none", warnings: [] }),
  async [Symbol.asyncDispose]() {},
};

await using service = await start(process.env, { openBus: async () => bottomless });
process.send?.(service.url);
// Asked anything, it says how much of the processor it has used so far, in microseconds.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
const stop = Promise.withResolvers<void>();
process.once("disconnect", stop.resolve);
await stop.promise;
