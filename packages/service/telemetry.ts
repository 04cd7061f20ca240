/**
 * Starts OpenTelemetry: one SDK per process, for all its services.
 *
 * Metrics are served at /metrics. Traces and logs are exported only if OTEL_EXPORTER_OTLP_ENDPOINT is set; otherwise each
 * request still has a trace id, in logs and events, and nothing is recorded. An SDK that was set up before stays in use. An
 * error in telemetry never fails the work: spans and log lines beyond a bound are dropped, and a stop waits two seconds for a
 * collector.
 */
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { emptyResource, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, type MetricData, MetricReader } from "@opentelemetry/sdk-metrics";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Env } from "@todoke/http";
import { withTimeout } from "@todoke/kernel/worker";
import { type LogExport, openLogExport } from "./log-export.ts";
import manifest from "./package.json" with { type: "json" };
import { traceIds, unrecordedTraces } from "./trace-ids.ts";

export interface TelemetrySettings {
  /** False with OTEL_SDK_DISABLED=true: no traces, no metrics. */
  readonly enabled: boolean;
  /** The service name in traces and exported logs. */
  readonly serviceName: string;
  /** The collector, without /v1/traces and /v1/logs. */
  readonly otlpEndpoint?: string;
  /** Whether log lines are exported too. */
  readonly exportsLogs: boolean;
  /** The share of recorded traces, of those that begin here. */
  readonly sampleRatio: number;
}

export interface Telemetry {
  /** Attributes of all metrics of this process, such as the version. */
  readonly resource: Resource;
  /** All metrics of this process, now. */
  collect(): Promise<readonly MetricData[]>;
  /** Exports a line of the log; undefined if lines are written to stdout only. */
  readonly exportLine?: LogExport["send"];
  /** Exports pending spans and lines, within a bound. */
  flush(): Promise<void>;
}

/** The variables and their meaning are OpenTelemetry's. An error is pushed, a sentence each. */
export function readTelemetrySettings(env: Env, errors: string[]): TelemetrySettings {
  const otlpEndpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT || "";
  if (otlpEndpoint && !/^https?:$/.test(URL.parse(otlpEndpoint)?.protocol ?? ""))
    errors.push("OTEL_EXPORTER_OTLP_ENDPOINT should be the http or https URL of a collector, as http://127.0.0.1:4318");
  const sampleRatio = Number(env.OTEL_TRACES_SAMPLER_ARG || 1);
  if (!(sampleRatio >= 0 && sampleRatio <= 1))
    errors.push("OTEL_TRACES_SAMPLER_ARG should be the share of traces that are recorded, from 0 to 1");
  const logsExporter = env.OTEL_LOGS_EXPORTER || "otlp";
  if (logsExporter !== "otlp" && logsExporter !== "none") errors.push("OTEL_LOGS_EXPORTER should be otlp or none");
  return {
    enabled: env.OTEL_SDK_DISABLED !== "true",
    serviceName: env.OTEL_SERVICE_NAME || "todoke",
    ...(otlpEndpoint && { otlpEndpoint }),
    exportsLogs: otlpEndpoint !== "" && logsExporter === "otlp",
    sampleRatio,
  };
}

const off: Telemetry = { resource: emptyResource(), collect: async () => [], flush: async () => {} };

let running: Telemetry | undefined;

/** The first call decides for the process; later calls get the same. `onError` is called while the collector is unavailable. */
export function startTelemetry(settings: TelemetrySettings, onError: (error: Error) => void): Telemetry {
  if (!settings.enabled) return off;
  running ??= start(settings, onError);
  return running;
}

// The bound on reading gauges, and on the last export.
const timeoutMs = 2_000;

function start(settings: TelemetrySettings, onError: (error: Error) => void): Telemetry {
  const resource = resourceFromAttributes({
    "service.name": settings.serviceName,
    "service.version": manifest.version,
  });
  const reader = new PullReader();
  const traces = recordedTraces(settings, { resource, onError });
  const logs = exportedLogs(settings, { resource, onError });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(traces ?? unrecordedTraces);
  metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [reader] }));
  return {
    resource,
    async collect() {
      const { resourceMetrics } = await reader.collect({ timeoutMillis: timeoutMs });
      return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    },
    ...(logs && { exportLine: logs.send }),
    async flush() {
      const flushed = Promise.all([traces?.forceFlush({ timeoutMillis: timeoutMs }), logs?.flush()]);
      await withTimeout(timeoutMs, flushed).catch(() => {});
    },
  };
}

interface ExportContext {
  readonly resource: Resource;
  readonly onError: (error: Error) => void;
}

function recordedTraces({ otlpEndpoint, sampleRatio }: TelemetrySettings, { resource, onError }: ExportContext) {
  if (otlpEndpoint === undefined) return undefined;
  const url = urlOf(otlpEndpoint, "traces");
  const exporter = new OTLPTraceExporter({ url });
  reportFailures(exporter, { what: `traces cannot be exported to ${url}`, onError });
  return new TracerProvider({
    resource,
    idGenerator: traceIds,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    // The spans of one busy second; a slow collector loses the rest.
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: 20_000, maxExportBatchSize: 2_000 })],
  });
}

function exportedLogs({ otlpEndpoint, exportsLogs }: TelemetrySettings, { resource, onError }: ExportContext) {
  if (otlpEndpoint === undefined || !exportsLogs) return undefined;
  const url = urlOf(otlpEndpoint, "logs");
  const exporter = new OTLPLogExporter({ url });
  reportFailures(exporter, { what: `log lines cannot be exported to ${url}`, onError });
  return openLogExport({ exporter, resource });
}

const urlOf = (endpoint: string, signal: "logs" | "traces") => `${endpoint.replace(/\/+$/, "")}/v1/${signal}`;

interface Exporter<Items> {
  export(items: Items, done: (result: { readonly code: number; readonly error?: Error }) => void): void;
}

const reportEveryMs = 60_000;

/** Reports failed exports once a minute: an unavailable collector must not fill the log. */
function reportFailures<Items>(
  exporter: Exporter<Items>,
  { what, onError }: { readonly what: string; readonly onError: (error: Error) => void },
): void {
  const send = exporter.export.bind(exporter);
  let reportedAt = Number.NEGATIVE_INFINITY;
  exporter.export = (items, done) =>
    send(items, (result) => {
      if (result.error && performance.now() - reportedAt >= reportEveryMs) {
        reportedAt = performance.now();
        onError(new Error(`${what} (OTEL_EXPORTER_OTLP_ENDPOINT)`, { cause: result.error }));
      }
      done(result);
    });
}

/** Collects on request only. */
class PullReader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}
