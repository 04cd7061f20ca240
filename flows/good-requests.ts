/** Reads the routes of a service from its OpenAPI document and builds a valid request for each. */

import { inlineRefs } from "@todoke/http/testing";

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

export interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly maxLength?: number;
  readonly anyOf?: readonly { readonly type?: string; readonly const?: string }[];
  readonly const?: string;
  readonly examples?: readonly string[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** A route with the schemas of its parameters and body. */
export interface Route {
  readonly method: string;
  readonly template: string;
  readonly operationId: string;
  readonly inPath: readonly string[];
  readonly pathSchemas: Readonly<Record<string, Schema>>;
  readonly inQuery: readonly Parameter[];
  readonly needsKey: boolean;
  readonly body?: Schema;
}

export function parseRoutes(document: OpenApi): Route[] {
  const { paths } = inlineRefs(document);
  return Object.entries(paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(([method, { operationId, parameters = [], requestBody }]) => {
      const body = requestBody?.content["application/json"]?.schema;
      const parametersIn = (where: string) => parameters.filter((parameter) => parameter.in === where);
      return {
        method: method.toUpperCase(),
        template,
        operationId,
        inPath: parametersIn("path").map(({ name }) => name),
        pathSchemas: Object.fromEntries(parametersIn("path").map(({ name, schema }) => [name, schema])),
        inQuery: parametersIn("query"),
        needsKey: parametersIn("header").some(({ name }) => name === "idempotency-key"),
        ...(body && { body }),
      };
    }),
  );
}

const uuid = "00000000-0000-7000-8000-000000000001";

/** Valid values for schemas without an example. */
const defaultValues: Readonly<Record<string, string>> = {
  event_id: uuid,
  notification_id: uuid,
  idempotency_key: "key-1",
  redriven_by: "aki",
  table: "inbox_dlq",
  group: "0".repeat(32),
  through: "1",
  undoes: "1",
  batch_id: uuid,
  key_id: uuid,
  sha256: "0".repeat(64),
  expires_at: new Date(Date.now() + 86_400_000).toISOString(),
};

function goodValue(name: string, { type, properties, items, anyOf, const: only, examples }: Schema): unknown {
  if (properties) return Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, goodValue(key, of)]));
  if (items) return [goodValue(name, items)];
  return (
    only ??
    anyOf?.[0]?.const ??
    examples?.[0] ??
    defaultValues[name] ??
    (type === "integer" ? 1 : type === "boolean" ? true : "good")
  );
}

/** A request that the route accepts, or answers with 404. */
export function goodRequest(route: Route): HttpRequest {
  const { method, template, inPath, inQuery, needsKey, body } = route;
  const filled = inPath.reduce((path, name) => path.replace(`{${name}}`, String(goodPathValue(name))), template);
  const required = inQuery.filter((each) => each.required);
  const query = required.map(({ name, schema }) => `${name}=${encodeURIComponent(String(goodValue(name, schema)))}`);
  const path = query.length > 0 ? `${filled}?${query.join("&")}` : filled;
  const headers = {
    authorization: "Bearer tdk_shop",
    ...(needsKey && { "idempotency-key": "key-1" }),
    ...(body && { "content-type": "application/json" }),
  };
  return { method, path, headers, ...(body && { body: JSON.stringify(goodValue("", body)) }) };
}

const goodPathValue = (name: string) =>
  defaultValues[name] ?? (name.endsWith("_id") && name !== "user_id" ? "1" : "good");
