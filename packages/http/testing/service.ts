/**
 * For tests of stopping: a service in a process of its own. It says its URL, "begun" for every request that it begins to
 * carry out, and at the end how many it has carried out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Type } from "typebox";
import { buildHttpApp, onStopSignals, Readiness, serve, serveHealth } from "../index.ts";

const [graceMs = 0, deadlineMs = 10_000, exitMs = 20_000] = process.argv.slice(2).map(Number);

const stop = new AbortController();
const app = await buildHttpApp({ title: "child", version: "1", log: { level: "silent" } });
using readiness = new Readiness({ checks: {}, stopping: stop.signal, log: app.log });
serveHealth(app, readiness);

let carriedOut = 0;
app.post("/work", { schema: { operationId: "work", body: Type.Object({ ms: Type.Integer() }) } }, async (request) => {
  console.log("begun");
  await sleep(request.body.ms);
  return { number: ++carriedOut };
});

const serving = await serve(app, { port: 0, stopping: stop.signal, graceMs, deadlineMs });
onStopSignals(async () => stop.abort(), { deadlineMs: exitMs });
console.log(serving.url);

await serving.closed;
console.log(`carried out ${carriedOut}`);
