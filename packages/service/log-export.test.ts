import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { publicRoute } from "@todoke/http";
import { MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import { eventContext } from "@todoke/kernel/telemetry";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openLogExport } from "./log-export.ts";
import manifest from "./package.json" with { type: "json" };
import { service } from "./service.ts";
import { openCollector } from "./testing/collector.ts";

const migrations = new URL("./testing/", import.meta.url); // No SQL: they have the tables of the kernel only.
const canary = "canary-7f3a";
const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
const traceparent = `00-${traceId}-${spanId}-01`;

/** It logs at its start, in a request, and when its relay fails. Its only event cannot be encoded. */
const loggingService = (name: string) =>
  service({
    name,
    port: 0,
    migrations,
    settings: () => ({}),
    emits: ["account.events"],
    async build({ app, db, outbox }) {
      app.log.info("building");
      app.get("/things", { ...publicRoute, schema: { operationId: "getThings" } }, async (request) => {
        request.log.warn({ user: { password: canary }, headers: { authorization: canary } }, "asked for things");
        return {};
      });
      const event = {
        eventId: fixedId(1),
        eventType: "AccountCreated",
        subject: "account.events",
        aggregateKey: "u_1",
        version: 1,
        payload: {},
        headers: { traceparent },
      };
      await transaction(db, (tx) => outbox.append(tx, event));
    },
  });

test("lines of all services of a process reach the collector, with service, version and trace, and without secrets", async () => {
  await using collector = await openCollector();
  await using t = await testDatabase();
  const names = ["shop", "depot"];
  for (const name of names) {
    const { migrate, start } = loggingService(name);
    const variable = name.toUpperCase();
    const env = {
      DATABASE_URL: t.url,
      [`${variable}_PORT`]: "0",
      LOG_LEVEL: "info",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    };
    await migrate(env, { dryRun: false });
    await using running = await start(env, { openBus: async () => memoryBus(new MemoryBroker()) });
    expect((await fetch(`${running.url}/things`, { headers: { traceparent } })).status).toBe(200);
    const ofThis = () => collector.records().filter(({ attributes }) => attributes.service === name);
    await expect
      .poll(() => ofThis().map(({ severity }) => severity))
      .toEqual(expect.arrayContaining(["INFO", "WARN", "ERROR"]));
  } // A stop flushes.

  const records = collector.records();
  for (const name of names) {
    const own = records.filter(({ attributes }) => attributes.service === name);
    expect(own.map(({ scope, attributes }) => [scope, attributes.version])).toEqual(
      own.map(() => [`${name} ${manifest.version}`, manifest.version]),
    );
    expect(own.find(({ body }) => body === "asked for things")).toMatchObject({
      severity: "WARN",
      traceId,
      spanId: expect.stringMatching(/^(?!b7ad6b7169203331)[0-9a-f]{16}$/), // Of the request, a child of the caller's.
    });
    expect(own.find(({ severity }) => severity === "ERROR")).toMatchObject({
      traceId,
      spanId,
      attributes: { worker: `${name} relay`, event_id: fixedId(1), "exception.stacktrace": expect.any(String) },
    });
  }
  expect(JSON.stringify(collector.received)).toContain("(hidden)");
  expect(JSON.stringify(collector.received)).not.toContain(canary);
});

test("while the collector does not respond, lines beyond the queue are dropped and no call waits or throws", async () => {
  const isUp = Promise.withResolvers<void>();
  await using collector = await openCollector({ respondAfter: isUp.promise });
  const exporter = new OTLPLogExporter({ url: `${collector.url}v1/logs` });
  const { send, flush } = openLogExport({ exporter, resource: resourceFromAttributes({}) });
  send("not a line");
  const line = JSON.stringify({
    level: 30,
    time: new Date().toISOString(),
    msg: "busy",
    service: "shop",
    version: "1",
  });
  const lines = 15_000;
  for (let n = 0; n < lines; n++) send(line);
  isUp.resolve();
  await flush();
  const received = collector.records().length;
  expect(received).toBeGreaterThanOrEqual(10_000);
  expect(received).toBeLessThan(lines);
});

test("a flush that starts during another one exports the lines in between", async () => {
  const isUp = Promise.withResolvers<void>();
  await using collector = await openCollector({ respondAfter: isUp.promise });
  const exporter = new OTLPLogExporter({ url: `${collector.url}v1/logs` });
  const { send, flush } = openLogExport({ exporter, resource: resourceFromAttributes({}) });
  const log = (msg: string) => send(JSON.stringify({ level: 30, time: new Date().toISOString(), msg }));
  log("first");
  const first = flush();
  await expect.poll(() => collector.received).toHaveLength(1);
  log("second");
  const second = flush();
  isUp.resolve();
  await Promise.all([first, second]);
  expect(collector.records().map(({ body }) => body)).toEqual(["first", "second"]);
});

test("the span of an event is the one in its traceparent", () => {
  const headers = { traceparent, trace_id: traceId };
  expect(eventContext({ headers })).toEqual({ trace_id: traceId, span_id: spanId });
});
