/**
 * Makes the schema of a route mean what it says, whoever wrote it: an object takes the fields it names and no others,
 * and a whole number in a path or query is read as one, from plain decimal digits only. Nothing else is ever converted,
 * filled in or left out: what the handler gets, and what the idempotency digest covers, is what the caller sent.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";

export function holdRoutesToTheirSchemas(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    if (!route.schema) return;
    const { body, querystring = noQuery, params } = route.schema;
    const place = `${[route.method].flat().join(" ")} ${route.url}`;
    route.schema = {
      ...route.schema,
      ...(body !== undefined && { body: closed(body, `${place}: the body`) }),
      querystring: closed(querystring, `${place}: the query`),
    };
    readWholeNumbers(route, { query: wholeNumbersOf(querystring), params: wholeNumbersOf(params) });
  });
}

/** A route that says nothing of a query takes none: a filter that is spelt wrong must not pass for one that was heard. */
const noQuery = { type: "object", properties: {} };

type Schema = Record<string, unknown>;

/** A copy in which every object that does not say what else it takes takes nothing else. */
function closed(schema: unknown, place: string): unknown {
  if (Array.isArray(schema)) return schema.map((one) => closed(one, place));
  if (typeof schema !== "object" || schema === null) return schema;
  const copy: Schema = { ...schema };
  if ("allOf" in copy) {
    throw new Error(`${place} uses allOf, whose parts would refuse each other's fields: write it as one object`);
  }
  for (const key of ["items", "anyOf", "oneOf", "additionalProperties"]) {
    if (key in copy) copy[key] = closed(copy[key], place);
  }
  for (const key of ["properties", "patternProperties", "$defs"]) {
    if (key in copy) copy[key] = closedEach(copy[key] as Schema, place);
  }
  if (copy.type === "object" && !("additionalProperties" in copy)) copy.additionalProperties = false;
  return copy;
}

function closedEach(schemas: Schema, place: string): Schema {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closed(schema, place)]));
}

/** The names of the properties that are declared as whole numbers. */
function wholeNumbersOf(schema: unknown): readonly string[] {
  const properties = Object.entries((schema as { properties?: Record<string, Schema> } | undefined)?.properties ?? {});
  return properties.filter(([, property]) => property.type === "integer").map(([name]) => name);
}

function readWholeNumbers(route: RouteOptions, names: { query: readonly string[]; params: readonly string[] }): void {
  if (names.query.length + names.params.length === 0) return;
  const read = (request: FastifyRequest, _reply: unknown, done: () => void) => {
    readEach(request.query as Schema, names.query);
    readEach(request.params as Schema, names.params);
    done();
  };
  route.preValidation = [read, ...[route.preValidation ?? []].flat()];
}

const decimal = /^(?:0|-?[1-9]\d{0,15})$/;

/** What is not a whole number stays as it is, for the schema to refuse with the caller's own text. */
function readEach(values: Schema, names: readonly string[]): void {
  for (const name of names) {
    const text = values[name];
    if (typeof text !== "string" || !decimal.test(text)) continue;
    const number = Number(text);
    if (Number.isSafeInteger(number)) values[name] = number;
  }
}
