import type { Histogram } from "@opentelemetry/sdk-metrics";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { until } from "@todoke/kernel/testing";
import { Type } from "typebox";
import { beforeEach, expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { RawConnection } from "./testing/raw-http.ts";
import { recordTelemetry } from "./testing/recorded.ts";

const recorded = recordTelemetry();
beforeEach(recorded.reset);

async function setup() {
  const app = await buildHttpApp({ title: "test", version: "1", service: "things", log: { level: "silent" } });
  const schema = { operationId: "make", body: Type.Object({ text: Type.String() }) };
  app.post("/v1/users/:user_id/things", { schema }, async () => traceHeaders());
  app.get("/fails", { schema: { operationId: "fail" } }, async () => {
    throw new Error("no");
  });
  const make = (headers: Record<string, string> = {}) =>
    app.inject({ method: "POST", url: "/v1/users/u_1/things", headers, payload: { text: "x" } });
  return { app, make, [Symbol.asyncDispose]: () => app.close() };
}

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";

test("a request is a span named by its route, and its handler runs inside, also with a body", async () => {
  await using t = await setup();
  const inside = (await t.make()).json();
  const [span] = recorded.spans();
  expect(span?.name).toBe("POST /v1/users/:user_id/things");
  expect(span?.attributes).toEqual({
    service: "things",
    "http.request.method": "POST",
    "http.route": "/v1/users/:user_id/things",
    "http.response.status_code": 200,
  });
  expect(inside.traceparent).toBe(`00-${span?.spanContext().traceId}-${span?.spanContext().spanId}-01`);
});

test("parallel requests have separate traces", async () => {
  await using t = await setup();
  const responses = await Promise.all(Array.from({ length: 50 }, () => t.make()));
  expect(new Set(responses.map((response) => response.json().trace_id)).size).toBe(50);
});

test("a well-formed traceparent is continued", async () => {
  await using t = await setup();
  expect((await t.make({ traceparent: `00-${traceId}-${parentId}-01` })).json().trace_id).toBe(traceId);
  expect(recorded.spans()[0]?.parentSpanContext?.spanId).toBe(parentId);
});

test("events of a trace of the caller carry the id of the request, if its time can find them", async () => {
  await using t = await setup();
  const traceparent = `00-${traceId}-${parentId}-01`;
  const answer = await t.make({ traceparent });
  expect(answer.json().request_id).toBe(answer.headers["x-request-id"]);
  const own = "0190F3C2-7a3b-7c1e-9f00-8a6b2c4d5e6f";
  expect((await t.make({ traceparent, "x-request-id": own })).json().request_id).toBe(own.toLowerCase());
  expect((await t.make({ traceparent, "x-request-id": "my-request" })).json()).not.toHaveProperty("request_id");
});

test.each([
  ["too short", `00-${traceId}-${parentId}`],
  ["of another version", `01-${traceId}-${parentId}-01`],
  ["of no trace", `00-${"0".repeat(32)}-${parentId}-01`],
  ["of no span", `00-${traceId}-${"0".repeat(16)}-01`],
  ["in capitals", `00-${traceId.toUpperCase()}-${parentId}-01`],
  ["given twice", `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`],
  ["endless", `00-${traceId}-${parentId}-01${"-00".repeat(4_000)}`],
])("a traceparent that is %s begins a new trace", async (_what, traceparent) => {
  await using t = await setup();
  const response = await t.make({ traceparent });
  expect(response.statusCode).toBe(200);
  expect(response.json().trace_id).toMatch(/^[0-9a-f]{32}$/);
  expect(response.json().trace_id).not.toBe(traceId);
});

async function durations() {
  const { resourceMetrics } = await recorded.metrics();
  const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  const points = all.find(({ descriptor }) => descriptor.name === "http.server.request.duration")?.dataPoints ?? [];
  return points.map(({ attributes, value }) => ({
    service: attributes.service,
    method: attributes["http.request.method"],
    route: attributes["http.route"],
    status: attributes["http.response.status_code"],
    count: (value as Histogram).count,
  }));
}

test("durations have service, method, route and status; unknown paths add no series", async () => {
  await using t = await setup();
  const before = (await durations()).length;
  await t.make();
  await t.make();
  await t.app.inject("/fails");
  for (let n = 0; n < 20; n++) await t.app.inject(`/wp-login-${n}.php`);
  const after = await durations();
  expect(after.length - before).toBeLessThanOrEqual(3);
  expect(after.filter(({ route }) => route === "/v1/users/:user_id/things").map(({ status }) => status)).toContain(200);
  expect(after).toContainEqual({ service: "things", method: "GET", route: "/fails", status: 500, count: 1 });
  expect(after).toContainEqual({ service: "things", method: "GET", route: "", status: 404, count: 20 });
});

test("a 4xx is not an error of the span; a 5xx is", async () => {
  await using t = await setup();
  await t.app.inject("/nothing");
  await t.app.inject("/fails");
  expect(recorded.spans().map(({ name, status }) => [name, status.code])).toEqual([
    ["GET", 0],
    ["GET /fails", 2],
  ]);
});

test("a connection closed before its response counts as 499", async () => {
  await using t = await setup();
  const begun = Promise.withResolvers<void>();
  const never = Promise.withResolvers<object>();
  t.app.get("/slow", { schema: { operationId: "slow" } }, () => {
    begun.resolve();
    return never.promise;
  });
  const caller = await RawConnection.open(await t.app.listen({ port: 0, host: "127.0.0.1" }));
  caller.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  await begun.promise;
  await caller[Symbol.asyncDispose]();
  await until("the span has ended", () => recorded.spans().length === 1);
  expect(recorded.spans()[0]?.attributes["http.response.status_code"]).toBe(499);
  never.resolve({});
});
