/**
 * Enforces the schema of every route: an object accepts only the fields that it names, and an integer in a path or query is
 * read from plain decimal digits. Nothing else is converted, filled in or left out: the handler, and the idempotency
 * digest, get what the caller sent.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";

export function enforceRouteSchemas(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    if (!route.schema) return;
    const { body, querystring = noQuery, params } = route.schema;
    const where = `${[route.method].flat().join(" ")} ${route.url}`;
    route.schema = {
      ...route.schema,
      ...(body !== undefined && { body: closed(body, `${where}: the body`) }),
      querystring: closed(querystring, `${where}: the query`),
    };
    readIntegers(route, { query: integersIn(querystring), params: integersIn(params) });
  });
}

/** A route without a query schema accepts no query: a misspelt filter must not be ignored. */
const noQuery = { type: "object", properties: {} };

type Schema = Record<string, unknown>;

/** A copy in which objects accept no additional properties, unless they say so. */
function closed(schema: unknown, where: string): unknown {
  if (Array.isArray(schema)) return schema.map((one) => closed(one, where));
  if (typeof schema !== "object" || schema === null) return schema;
  const copy: Schema = { ...schema };
  if ("allOf" in copy) {
    throw new Error(`${where} uses allOf, whose parts would reject each other's fields: write it as one object`);
  }
  for (const key of ["items", "anyOf", "oneOf", "additionalProperties"]) {
    if (key in copy) copy[key] = closed(copy[key], where);
  }
  for (const key of ["properties", "patternProperties", "$defs"]) {
    if (key in copy) copy[key] = closedEach(copy[key] as Schema, where);
  }
  if (copy.type === "object" && !("additionalProperties" in copy)) copy.additionalProperties = false;
  return copy;
}

function closedEach(schemas: Schema, where: string): Schema {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closed(schema, where)]));
}

/** The names of the properties that are declared as integers. */
function integersIn(schema: unknown): readonly string[] {
  const properties = Object.entries((schema as { properties?: Record<string, Schema> } | undefined)?.properties ?? {});
  return properties.filter(([, property]) => property.type === "integer").map(([name]) => name);
}

function readIntegers(route: RouteOptions, names: { query: readonly string[]; params: readonly string[] }): void {
  if (names.query.length + names.params.length === 0) return;
  const read = (request: FastifyRequest, _reply: unknown, done: () => void) => {
    readEach(request.query as Schema, names.query);
    readEach(request.params as Schema, names.params);
    done();
  };
  route.preValidation = [read, ...[route.preValidation ?? []].flat()];
}

const decimal = /^(?:0|-?[1-9]\d{0,15})$/;

/** Other text stays as it is, so that the schema rejects it with the caller's own text. */
function readEach(values: Schema, names: readonly string[]): void {
  for (const name of names) {
    const text = values[name];
    if (typeof text !== "string" || !decimal.test(text)) continue;
    const number = Number(text);
    if (Number.isSafeInteger(number)) values[name] = number;
  }
}
