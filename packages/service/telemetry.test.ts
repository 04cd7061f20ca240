import { trace } from "@opentelemetry/api";
import { count } from "@todoke/kernel/telemetry";
import { expect, test } from "vitest";
import { prometheusText } from "./prometheus.ts";
import { readTelemetrySettings, startTelemetry } from "./telemetry.ts";
import { openCollector } from "./testing/collector.ts";

const read = (env: Record<string, string>) => {
  const errors: string[] = [];
  return { settings: readTelemetrySettings(env, errors), errors };
};

test("wrong settings are reported, a sentence each", () => {
  expect(read({}).settings).toEqual({ enabled: true, serviceName: "todoke", exportsLogs: false, sampleRatio: 1 });
  expect(read({}).errors).toEqual([]);
  const wrong = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
    OTEL_TRACES_SAMPLER_ARG: "2",
    OTEL_LOGS_EXPORTER: "console",
  };
  expect(read(wrong).errors).toEqual([
    expect.stringContaining("OTEL_EXPORTER_OTLP_ENDPOINT should be"),
    expect.stringContaining("OTEL_TRACES_SAMPLER_ARG should be"),
    "OTEL_LOGS_EXPORTER should be otlp or none",
  ]);
});

test("log lines are exported where traces are, unless OTEL_LOGS_EXPORTER is none", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
  expect(read(endpoint).settings.exportsLogs).toBe(true);
  expect(read({ ...endpoint, OTEL_LOGS_EXPORTER: "none" }).settings.exportsLogs).toBe(false);
  expect(read({ OTEL_LOGS_EXPORTER: "otlp" }).settings.exportsLogs).toBe(false);
});

test("a disabled SDK sets up nothing", async () => {
  const telemetry = startTelemetry(read({ OTEL_SDK_DISABLED: "true" }).settings, () => {});
  expect(await telemetry.collect()).toEqual([]);
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
  expect(prometheusText(await telemetry.collect(), telemetry.resource)).toContain(
    'todoke_retention_removed_total{table="t"} 3\n',
  );

  await collector[Symbol.asyncDispose]();
  trace.getTracer("test").startSpan("lost").end();
  await telemetry.flush();
  expect(errors).toEqual([]); // It ends before the exporter times out.
  await expect.poll(() => errors.map(({ message }) => message)).toHaveLength(1);
  expect(errors[0]?.message).toBe(
    `traces cannot be exported to ${collector.url}v1/traces (OTEL_EXPORTER_OTLP_ENDPOINT)`,
  );
});
