/**
 * Starts OpenTelemetry: one SDK per process, for all its services.
 *
 * Metrics are served at /metrics. Traces are exported only if OTEL_EXPORTER_OTLP_ENDPOINT is set; otherwise each request
 * still has a trace id, in logs and events, and nothing is recorded. An SDK that was set up before stays in use. An error in
 * telemetry never fails the work: spans beyond a bound are dropped, and a stop waits two seconds for a collector.
 */
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Env } from "@todoke/http";
import { prometheusText } from "./prometheus.ts";
import { unrecordedTraces } from "./trace-ids.ts";

export interface TelemetrySettings {
  /** False with OTEL_SDK_DISABLED=true: no traces, no metrics. */
  readonly enabled: boolean;
  /** The service name in traces. */
  readonly serviceName: string;
  /** The collector, without /v1/traces. */
  readonly otlpEndpoint?: string;
  /** The share of recorded traces, of those that begin here. */
  readonly sampleRatio: number;
}

export interface Telemetry {
  /** The text of /metrics. */
  metricsText(): Promise<string>;
  /** Exports pending spans, within a bound. */
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
  return {
    enabled: env.OTEL_SDK_DISABLED !== "true",
    serviceName: env.OTEL_SERVICE_NAME || "todoke",
    ...(otlpEndpoint && { otlpEndpoint }),
    sampleRatio,
  };
}

const off: Telemetry = { metricsText: async () => "", flush: async () => {} };

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
  const resource = resourceFromAttributes({ "service.name": settings.serviceName });
  const reader = new PullReader();
  const recorded = recordedTraces(settings, { resource, onError });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(recorded ?? unrecordedTraces);
  metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [reader] }));
  return {
    metricsText: async () => prometheusText(await reader.collect({ timeoutMillis: timeoutMs })),
    flush: async () => recorded?.forceFlush({ timeoutMillis: timeoutMs }).catch(() => {}),
  };
}

function recordedTraces(
  { otlpEndpoint, sampleRatio }: TelemetrySettings,
  { resource, onError }: { resource: Resource; onError: (error: Error) => void },
) {
  if (otlpEndpoint === undefined) return undefined;
  const url = `${otlpEndpoint.replace(/\/+$/, "")}/v1/traces`;
  const exporter = new LoggingExporter(url, (cause) => {
    onError(new Error(`traces cannot be exported to ${url} (OTEL_EXPORTER_OTLP_ENDPOINT)`, { cause }));
  });
  return new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    // The spans of one busy second; a slow collector loses the rest.
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: 20_000, maxExportBatchSize: 2_000 })],
  });
}

const reportEveryMs = 60_000;

/** Reports failed exports once a minute: an unavailable collector must not fill the log. */
class LoggingExporter extends OTLPTraceExporter {
  readonly #onError: (error: Error) => void;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(url: string, onError: (error: Error) => void) {
    super({ url });
    this.#onError = onError;
  }

  override export(...[spans, done]: Parameters<OTLPTraceExporter["export"]>): void {
    super.export(spans, (result) => {
      if (result.error && performance.now() - this.#reportedAt >= reportEveryMs) {
        this.#reportedAt = performance.now();
        this.#onError(result.error);
      }
      done(result);
    });
  }
}

/** Collects on request only. */
class PullReader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}
