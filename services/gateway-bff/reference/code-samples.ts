/** A curl line for every operation of a document, with the values of its example. */
import { exampleOf } from "@todoke/contracts/api";
import type { ApiDocument, Operation } from "./merge-documents.ts";

export function withCodeSamples<Document extends ApiDocument>(document: Document, origin: string): Document {
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([method, operation]) => {
          const source = curl({ method: method.toUpperCase(), path, operation, origin });
          return [method, { ...operation, "x-codeSamples": [{ lang: "Shell", label: "curl", source }] }];
        }),
      ),
    ]),
  );
  return { ...document, paths };
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  /** Of the gateway. */
  readonly origin: string;
}

function curl({ method, path, operation, origin }: Call): string {
  const { request = {} } = exampleOf(operation.operationId) ?? {};
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

function credentials({ security = [] }: Operation): string[] {
  const schemes = security.flatMap((each) => Object.keys(each));
  if (schemes.includes("session")) return ["Authorization: Bearer $TODOKE_SESSION"];
  if (schemes.includes("apiKey")) return ["Authorization: Bearer $TODOKE_API_KEY"];
  return schemes.length > 0 ? ["Authorization: Bearer $TODOKE_TOKEN"] : [];
}

/** For a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
