/** An OTLP collector for tests: the far side of the exporters. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface ReceivedRecord {
  readonly body: string;
  readonly severity: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  /** "name version" */
  readonly scope: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface CollectorOptions {
  /** Responds only after this has resolved. */
  readonly respondAfter?: Promise<void>;
}

export async function openCollector({ respondAfter }: CollectorOptions = {}) {
  const received: { path: string | undefined; body: string }[] = [];
  const server = createServer(async (request, response) => {
    received.push({ path: request.url, body: await text(request) });
    await respondAfter;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    /** The log records of every request so far. */
    records: (): ReceivedRecord[] =>
      received.filter(({ path }) => path === "/v1/logs").flatMap(({ body }) => readRecords(JSON.parse(body))),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Value = Readonly<Record<string, unknown>>;

interface LogsRequest {
  readonly resourceLogs: readonly {
    readonly scopeLogs: readonly {
      readonly scope: { readonly name: string; readonly version?: string };
      readonly logRecords: readonly {
        readonly body: Value;
        readonly severityText: string;
        readonly traceId?: string;
        readonly spanId?: string;
        readonly attributes: readonly { readonly key: string; readonly value: Value }[];
      }[];
    }[];
  }[];
}

/** A value is an object with one property, which names its type. */
const readValue = (value: Value) => Object.values(value)[0];

function readRecords({ resourceLogs }: LogsRequest): ReceivedRecord[] {
  return resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ scope, logRecords }) =>
      logRecords.map(({ body, severityText, traceId, spanId, attributes }) => ({
        body: String(readValue(body)),
        severity: severityText,
        traceId,
        spanId,
        scope: `${scope.name} ${scope.version}`,
        attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, readValue(value)])),
      })),
    ),
  );
}
