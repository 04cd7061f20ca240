import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { trace } from "@opentelemetry/api";
import { count } from "@todoke/kernel/telemetry";
import { expect, test } from "vitest";
import { readTelemetrySettings, startTelemetry } from "./telemetry.ts";

const read = (env: Record<string, string>) => {
  const errors: string[] = [];
  return { settings: readTelemetrySettings(env, errors), errors };
};

/** The far side of the exporter. */
async function openCollector() {
  const received: { path: string | undefined; body: string }[] = [];
  const server = createServer(async (request, response) => {
    received.push({ path: request.url, body: await text(request) });
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("wrong settings are reported, a sentence each", () => {
  expect(read({}).settings).toEqual({ enabled: true, serviceName: "todoke", sampleRatio: 1 });
  expect(read({}).errors).toEqual([]);
  expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318", OTEL_TRACES_SAMPLER_ARG: "2" }).errors).toEqual([
    expect.stringContaining("OTEL_EXPORTER_OTLP_ENDPOINT should be"),
    expect.stringContaining("OTEL_TRACES_SAMPLER_ARG should be"),
  ]);
});

test("a disabled SDK sets up nothing", async () => {
  const telemetry = startTelemetry(read({ OTEL_SDK_DISABLED: "true" }).settings, () => {});
  expect(await telemetry.metricsText()).toBe("");
  expect(trace.getTracer("test").startSpan("x").spanContext().traceId).toBe("0".repeat(32));
});

test("spans go to the collector, and a flush does not wait for a dead one", async () => {
  await using collector = await openCollector();
  const { settings } = read({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "shop" });
  const errors: Error[] = [];
  const telemetry = startTelemetry(settings, (error) => errors.push(error));
  expect(startTelemetry(read({}).settings, () => {})).toBe(telemetry);

  trace.getTracer("test").startSpan("work").end();
  count("todoke.retention.removed", { table: "t" }, 3);
  await telemetry.flush();

  expect(collector.received.map(({ path }) => path)).toEqual(["/v1/traces"]);
  expect(collector.received[0]?.body).toContain('"name":"work"');
  expect(collector.received[0]?.body).toContain('"stringValue":"shop"');
  expect(await telemetry.metricsText()).toContain('todoke_retention_removed_total{table="t"} 3\n');

  await collector[Symbol.asyncDispose]();
  trace.getTracer("test").startSpan("lost").end();
  await telemetry.flush();
  expect(errors).toEqual([]); // It is over before the exporter has given up.
  await expect.poll(() => errors.map(({ message }) => message)).toHaveLength(1);
  expect(errors[0]?.message).toBe(
    `traces cannot be exported to ${collector.url}v1/traces (OTEL_EXPORTER_OTLP_ENDPOINT)`,
  );
});
