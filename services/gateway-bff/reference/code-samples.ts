/** Code samples of every operation of a document: a curl line, and a program with the client, with the values of its example. */
import { type Example, exampleOf } from "@todoke/contracts/api";
import { clientSamples } from "./client-samples.ts";
import type { ApiDocument, Operation } from "./merge-documents.ts";

export interface SampleOptions {
  /** Of the gateway. */
  readonly origin: string;
  addressOf(service: string): string;
}

export function withCodeSamples<Document extends ApiDocument>(document: Document, options: SampleOptions): Document {
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([method, operation]) => [
          method,
          { ...operation, "x-codeSamples": samplesOf({ method: method.toUpperCase(), path, operation }, options) },
        ]),
      ),
    ]),
  );
  return { ...document, paths };
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function samplesOf(call: Call, addresses: SampleOptions) {
  const { operationId } = call.operation;
  const request = requestOf(operationId);
  const schemes = schemesOf(call.operation);
  const ofClient = clientSamples({ ...call, ...addresses, operationId, request, schemes });
  return [
    { lang: "Shell", label: "curl", source: curl(call, request, addresses.origin) },
    ...ofClient.map((sample) => ({ lang: "TypeScript", ...sample })),
  ];
}

/** A stream is of the same user as the list of the same name. */
function requestOf(operationId: string): Example["request"] {
  const { path = {} } = exampleOf(operationId.replace(/^follow/, "list"))?.request ?? {};
  return exampleOf(operationId)?.request ?? { path };
}

function curl({ method, path, operation }: Call, request: Example["request"], origin: string): string {
  const { path: inPath = {}, query = {}, headers = {}, body } = request;
  const filled = path.replace(/\{(\w+)\}/g, (text, name: string) =>
    inPath[name] === undefined ? text : encodeURIComponent(inPath[name]),
  );
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  const [server] = operation.servers ?? [];
  const url = `${!server || server.url === "/" ? origin : server.url}${filled}${search.size > 0 ? `?${search}` : ""}`;
  const lines = [
    ...(method === "GET" ? [] : [`-X ${method}`]),
    quoted(url),
    ...credentials(operation).map((header) => `-H "${header}"`),
    ...Object.entries(headers).map(([name, value]) =>
      name === "idempotency-key" ? `-H "Idempotency-Key: $(uuidgen)"` : `-H ${quoted(`${name}: ${value}`)}`,
    ),
    ...(body === undefined
      ? []
      : [`-H "Content-Type: application/json"`, `-d ${quoted(JSON.stringify(body, null, 2))}`]),
  ];
  return `curl ${lines.join(" \\\n  ")}`;
}

const schemesOf = ({ security = [] }: Operation): string[] => security.flatMap((each) => Object.keys(each));

function credentials(operation: Operation): string[] {
  const schemes = schemesOf(operation);
  if (schemes.includes("session")) return ["Authorization: Bearer $TODOKE_SESSION"];
  if (schemes.includes("apiKey")) return ["Authorization: Bearer $TODOKE_API_KEY"];
  return schemes.length > 0 ? ["Authorization: Bearer $TODOKE_TOKEN"] : [];
}

/** For a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
