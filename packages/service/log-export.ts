/**
 * Sends log lines to a collector by OTLP, beside stdout.
 *
 * A record is made from the line as it is written, so a secret that is hidden there is hidden here. Records wait in a bounded
 * queue: while the collector is slow or unavailable, the rest is dropped, and no request waits for it.
 */
import { type AnyValue, context, isSpanContextValid, SeverityNumber, TraceFlags, trace } from "@opentelemetry/api";
import type { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import type { Resource } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { logFields } from "@todoke/kernel/telemetry";

export interface LogExport {
  /** Queues a line of the log. It never throws. */
  send(line: string): void;
  /** Exports what is queued. */
  flush(): Promise<void>;
}

export interface LogExportOptions {
  readonly exporter: OTLPLogExporter;
  readonly resource: Resource;
}

export function openLogExport({ exporter, resource }: LogExportOptions): LogExport {
  const provider = new LoggerProvider({
    resource,
    // A stack with its causes fits.
    logRecordLimits: { attributeValueLengthLimit: 16_384 },
    processors: [new BatchLogRecordProcessor({ exporter, maxQueueSize: 10_000, maxExportBatchSize: 500 })],
  });
  let flushed = Promise.resolve();
  return {
    send(line) {
      try {
        const fields: Line = JSON.parse(line);
        provider.getLogger(fields.service ?? "todoke", fields.version).emit(toRecord(fields));
      } catch {
        // The line is on stdout. Reporting it here would write another line.
      }
    },
    flush() {
      // The processor ignores a flush during another one, which may have missed the last lines.
      flushed = flushed.then(() => provider.forceFlush());
      return flushed;
    },
  };
}

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly causes?: readonly LoggedError[];
}

interface Line {
  readonly level: number;
  readonly time: string;
  readonly msg?: string;
  readonly service?: string;
  readonly version?: string;
  readonly err?: LoggedError;
  readonly [field: string]: unknown;
}

const severities = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] as const;

function toRecord({ level, time, msg, err, ...fields }: Line) {
  const severityText = severities[level / 10 - 1] ?? "INFO";
  const { [logFields.traceId]: traceId, [logFields.spanId]: spanId, ...others } = fields;
  const span = { traceId: String(traceId), spanId: String(spanId), traceFlags: TraceFlags.NONE };
  const isTraced = isSpanContextValid(span);
  return {
    timestamp: new Date(time),
    severityNumber: SeverityNumber[severityText],
    severityText,
    body: msg ?? "",
    attributes: {
      ...((isTraced ? others : fields) as Record<string, AnyValue>),
      ...(err && {
        "exception.type": err.type,
        "exception.message": err.message,
        "exception.stacktrace": stacksOf(err),
      }),
    },
    // The active span otherwise: a line of a worker has no fields about its trace.
    context: isTraced ? trace.setSpanContext(context.active(), span) : context.active(),
  };
}

const stacksOf = ({ stack, causes = [] }: LoggedError): string =>
  [stack, ...causes.map(stacksOf)].join("\nCaused by: ");
