/**
 * For tests of stopping: a service in a process of its own. It prints its URL, "begun" for every request that it starts, and
 * at the end how many it has completed. A request with a negative time completes that long after the stop has begun.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { buildHttpApp } from "@todoke/http";
import { Type } from "typebox";
import { serveHealth } from "../health.ts";
import { serve } from "../listen.ts";
import { Readiness } from "../readiness.ts";
import { onStopSignals } from "../stop-signals.ts";

const [graceMs = 0, deadlineMs = 10_000, exitMs = 20_000] = process.argv.slice(2).map(Number);

const stop = new AbortController();
const stopBegun = once(stop.signal, "abort");
const app = await buildHttpApp({ title: "child", version: "1", log: { level: "silent" } });
// A busy machine must not make it unready.
const loopDelayMaxMs = 600_000;
using readiness = new Readiness({ checks: {}, stopping: stop.signal, log: app.log, loopDelayMaxMs });
serveHealth(app, readiness);

let completed = 0;
app.post("/work", { schema: { operationId: "work", body: Type.Object({ ms: Type.Integer() }) } }, async (request) => {
  console.log("begun");
  if (request.body.ms < 0) await stopBegun;
  await sleep(Math.abs(request.body.ms));
  return { number: ++completed };
});

const serving = await serve(app, { port: 0, stopping: stop.signal, graceMs, deadlineMs });
onStopSignals(async () => stop.abort(), { deadlineMs: exitMs });
console.log(serving.url);

await serving.closed;
console.log(`completed ${completed}`);
