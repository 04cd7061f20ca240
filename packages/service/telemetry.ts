/**
 * What a process tells of itself: one OpenTelemetry SDK for all its services and for the whole of its life.
 *
 * Metrics are read on /metrics. Traces leave the process only when it is told where to
 * (OTEL_EXPORTER_OTLP_ENDPOINT); otherwise each request still has a trace id, in logs and events, and costs no recording.
 * Whoever has set up an SDK before keeps it. Telemetry that fails never fails the work: spans are dropped beyond a bound,
 * and a stop waits for a collector for two seconds only.
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
  /** As traces show where they come from. */
  readonly serviceName: string;
  /** The collector, without /v1/traces. */
  readonly otlpEndpoint?: string;
  /** The share of traces that are recorded, of those that begin here. */
  readonly sampleRatio: number;
}

export interface Telemetry {
  /** The text of /metrics. */
  metricsText(): Promise<string>;
  /** Sends what is still here, as far as that can be done soon. */
  flush(): Promise<void>;
}

/** The names of these variables, and what they mean, are OpenTelemetry's. A fault is pushed, a sentence each. */
export function readTelemetrySettings(env: Env, faults: string[]): TelemetrySettings {
  const otlpEndpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT || "";
  if (otlpEndpoint && !/^https?:$/.test(URL.parse(otlpEndpoint)?.protocol ?? ""))
    faults.push("OTEL_EXPORTER_OTLP_ENDPOINT should be the http or https URL of a collector, as http://127.0.0.1:4318");
  const sampleRatio = Number(env.OTEL_TRACES_SAMPLER_ARG || 1);
  if (!(sampleRatio >= 0 && sampleRatio <= 1))
    faults.push("OTEL_TRACES_SAMPLER_ARG should be the share of traces that are recorded, from 0 to 1");
  return {
    enabled: env.OTEL_SDK_DISABLED !== "true",
    serviceName: env.OTEL_SERVICE_NAME || "todoke",
    ...(otlpEndpoint && { otlpEndpoint }),
    sampleRatio,
  };
}

const off: Telemetry = { metricsText: async () => "", flush: async () => {} };

let running: Telemetry | undefined;

/** The first call decides for the process; later ones get what it has started. `onError` hears of a collector that is away. */
export function startTelemetry(settings: TelemetrySettings, onError: (error: Error) => void): Telemetry {
  if (!settings.enabled) return off;
  running ??= start(settings, onError);
  return running;
}

// So long may a reading of gauges, or a collector at the end, keep somebody waiting.
const patienceMs = 2_000;

function start(settings: TelemetrySettings, onError: (error: Error) => void): Telemetry {
  const resource = resourceFromAttributes({ "service.name": settings.serviceName });
  const reader = new Pulled();
  const recorded = recordedTraces(settings, { resource, onError });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(recorded ?? unrecordedTraces);
  metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [reader] }));
  return {
    metricsText: async () => prometheusText(await reader.collect({ timeoutMillis: patienceMs })),
    flush: async () => recorded?.forceFlush({ timeoutMillis: patienceMs }).catch(() => {}),
  };
}

function recordedTraces(
  { otlpEndpoint, sampleRatio }: TelemetrySettings,
  { resource, onError }: { resource: Resource; onError: (error: Error) => void },
) {
  if (otlpEndpoint === undefined) return undefined;
  const url = `${otlpEndpoint.replace(/\/+$/, "")}/v1/traces`;
  const exporter = new TellingExporter(url, (cause) => {
    onError(new Error(`traces do not reach ${url} (OTEL_EXPORTER_OTLP_ENDPOINT)`, { cause }));
  });
  return new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    // A second of the busiest service; what a slow collector cannot take beyond that is dropped.
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: 20_000, maxExportBatchSize: 2_000 })],
  });
}

const tellEveryMs = 60_000;

/** Tells of exports that fail, once a minute: a collector that is away must not fill the log. */
class TellingExporter extends OTLPTraceExporter {
  readonly #onError: (error: Error) => void;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(url: string, onError: (error: Error) => void) {
    super({ url });
    this.#onError = onError;
  }

  override export(...[spans, done]: Parameters<OTLPTraceExporter["export"]>): void {
    super.export(spans, (result) => {
      if (result.error && performance.now() - this.#toldAt >= tellEveryMs) {
        this.#toldAt = performance.now();
        this.#onError(result.error);
      }
      done(result);
    });
  }
}

/** Collects when asked, and only then. */
class Pulled extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}
