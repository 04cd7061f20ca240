/** The routes of a service as its own OpenAPI document tells of them, each with a request that it takes. */

import { inlineRefs } from "@todoke/http/testing";

export interface Wish {
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
  readonly anyOf?: readonly { readonly const?: string }[];
  readonly const?: string;
  readonly examples?: readonly string[];
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** A route, with values that it takes. */
export interface Route {
  readonly method: string;
  readonly template: string;
  readonly operationId: string;
  readonly inPath: readonly string[];
  readonly pathSchemas: Readonly<Record<string, Schema>>;
  readonly inQuery: readonly { readonly name: string; readonly schema: Schema }[];
  readonly needsKey: boolean;
  readonly body?: Schema;
}

export function routesOf(document: OpenApi): Route[] {
  const { paths } = inlineRefs(document);
  return Object.entries(paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(([method, { operationId, parameters = [], requestBody }]) => {
      const body = requestBody?.content["application/json"]?.schema;
      const placed = (where: string) => parameters.filter((parameter) => parameter.in === where);
      return {
        method: method.toUpperCase(),
        template,
        operationId,
        inPath: placed("path").map(({ name }) => name),
        pathSchemas: Object.fromEntries(placed("path").map(({ name, schema }) => [name, schema])),
        inQuery: placed("query"),
        needsKey: placed("header").some(({ name }) => name === "idempotency-key"),
        ...(body && { body }),
      };
    }),
  );
}

const uuid = "00000000-0000-7000-8000-000000000001";

/** What good values look like where the schema has no example. */
const usual: Readonly<Record<string, string>> = {
  event_id: uuid,
  notification_id: uuid,
  idempotency_key: "key-1",
  redriven_by: "aki",
};

function goodValue(name: string, { type, properties, items, anyOf, const: only, examples }: Schema): unknown {
  if (properties) return Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, goodValue(key, of)]));
  if (items) return [goodValue(name, items)];
  return only ?? anyOf?.[0]?.const ?? examples?.[0] ?? usual[name] ?? (type === "integer" ? 1 : "good");
}

/** A request that the route can carry out, or at least look up. */
export function goodRequest(route: Route): Wish {
  const { method, template, inPath, needsKey, body } = route;
  const path = inPath.reduce((so, name) => so.replace(`{${name}}`, String(goodPathValue(name))), template);
  const headers = {
    authorization: "Bearer tdk_shop",
    ...(needsKey && { "idempotency-key": "key-1" }),
    ...(body && { "content-type": "application/json" }),
  };
  return { method, path, headers, ...(body && { body: JSON.stringify(goodValue("", body)) }) };
}

const goodPathValue = (name: string) => usual[name] ?? (name.endsWith("_id") && name !== "user_id" ? "1" : "good");
