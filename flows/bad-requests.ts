/** Invalid requests for any route. Each changes one thing of a valid request and states the field that the error must name. */
import { goodRequest, type HttpRequest, type Route, type Schema } from "./good-requests.ts";

export interface BadRequest extends HttpRequest {
  readonly reason: string;
  /** Missing if the request cannot be parsed that far. */
  readonly field?: string;
}

export const badRequests = (route: Route): BadRequest[] => [
  ...route.inPath.flatMap((name) => badPaths(route, name)),
  ...badQueries(route),
  ...(route.needsKey ? badKeys(route) : []),
  ...(route.body ? badBodies(route, route.body) : []),
];

function badPaths(route: Route, name: string): BadRequest[] {
  const withValue = (value: string) => {
    const template = route.template.replace(`{${name}}`, value);
    return goodRequest({ ...route, template }); // The other parameters are valid.
  };
  const isShort = (route.pathSchemas[name]?.maxLength ?? 0) < 200;
  return [
    { ...withValue("a%00b"), reason: "NUL in the path", field: `path.${name}` },
    // A part of a path that is longer than any id is refused before the route is known.
    isShort
      ? { ...withValue("x".repeat(200)), reason: "too long in the path", field: `path.${name}` }
      : { ...withValue("x".repeat(400)), reason: "too long for a path" },
    { ...withValue("%ff"), reason: "bad UTF-8 in the path" },
    { ...withValue("%ed%a0%80"), reason: "a lone surrogate in the path" },
  ];
}

function badQueries(route: Route): BadRequest[] {
  const good = goodRequest(route);
  const withQuery = (query: string) => ({ ...good, path: `${good.path.replace(/\?.*/, "")}?${query}` });
  return [
    { ...withQuery("surprise=1"), reason: "an unknown query parameter", field: "query.surprise" },
    { ...withQuery("surprise=%ff"), reason: "bad UTF-8 in the query" },
    ...route.inQuery.flatMap(({ name, schema }) => [
      { ...withQuery(`${name}=a%00b`), reason: "NUL in the query", field: `query.${name}` },
      { ...withQuery(`${name}=1&${name}=1`), reason: "the same twice", field: `query.${name}` },
      { ...withQuery(`${name}=`), reason: "nothing in the query", field: `query.${name}` },
      ...(schema.type === "integer"
        ? ["9007199254740993", "-1", "x"].map((value) => ({
            ...withQuery(`${name}=${value}`),
            reason: `${value} in the query`,
            field: `query.${name}`,
          }))
        : []),
    ]),
  ];
}

function badKeys(route: Route): BadRequest[] {
  const good = goodRequest(route);
  const { "idempotency-key": _, ...without } = good.headers;
  const withKey = (key: string) => ({ ...good, headers: { ...good.headers, "idempotency-key": key } });
  const field = "header.idempotency-key";
  return [
    { ...good, headers: without, reason: "no key", field },
    { ...withKey(""), reason: "an empty key", field },
    { ...withKey("a b"), reason: "a key with a space", field },
    { ...withKey("k".repeat(256)), reason: "a key that is too long", field },
    { ...withKey("caf\u00e9"), reason: "a key that is not ASCII", field },
  ];
}

function badBodies(route: Route, schema: Schema): BadRequest[] {
  const good = goodRequest(route);
  const text = String(good.body);
  const withBody = (body: string | Uint8Array<ArrayBuffer>) => ({ ...good, body });
  return [
    ...listFields(schema, "body").flatMap((field) => badFields(good, field)),
    { ...withBody("[]"), reason: "a list for a body", field: "body" },
    { ...withBody("null"), reason: "null for a body", field: "body" },
    { ...withBody(text.slice(0, -1)), reason: "half a body", field: "body" },
    { ...withBody(`{"deep":${"[".repeat(2_000)}${"]".repeat(2_000)}}`), reason: "a deep body", field: pastDepth },
    { ...withBody(text.padEnd(1_100_000)), reason: "an oversize body" },
    { ...withBody(withStrayByte(text)), reason: "bad UTF-8" },
    { ...good, headers: { ...good.headers, "content-type": "text/plain" }, reason: "not called JSON" },
  ];
}

/** A body may have 32 levels. */
const pastDepth = `body.deep${"[0]".repeat(31)}`;

/** Puts an invalid byte into the last string of the body. */
function withStrayByte(text: string): Uint8Array<ArrayBuffer> {
  const index = text.lastIndexOf('"');
  return Uint8Array.from([...Buffer.from(text.slice(0, index)), 0xff, ...Buffer.from(text.slice(index))]);
}

interface Field {
  /** As the error names it: body.items[0].user_id. */
  readonly name: string;
  readonly keys: readonly (string | number)[];
  readonly required: boolean;
  readonly leaf: boolean;
  /** Of the values that fit no other field. */
  readonly accepts: "true" | "{}" | "7" | "null" | undefined;
}

/** All fields of a body, nested ones included. */
function listFields(schema: Schema, name: string, keys: readonly (string | number)[] = []): Field[] {
  if (schema.items) return listFields(schema.items, `${name}[0]`, [...keys, 0]);
  return Object.entries(schema.properties ?? {}).flatMap(([key, of]) => {
    const field = { name: `${name}.${key}`, keys: [...keys, key] };
    const required = schema.required?.includes(key) ?? false;
    const leaf = !of.items && !of.properties;
    return [{ ...field, required, leaf, accepts: acceptedBy(of) }, ...listFields(of, field.name, field.keys)];
  });
}

function acceptedBy({ type, properties, required, anyOf }: Schema): Field["accepts"] {
  if (type === "boolean") return "true";
  if (type === "integer") return "7";
  if (anyOf?.some((each) => each.type === "null")) return "null";
  return properties !== undefined && !required?.length ? "{}" : undefined;
}

const badTexts = { NUL: "a\0b", "a lone surrogate": "\ud800", nothing: "", "an endless text": "x".repeat(2_000) };

function badFields(good: HttpRequest, { name, keys, required, leaf, accepts }: Field): BadRequest[] {
  const withValue = (reason: string, value: unknown) => ({
    ...good,
    body: bodyWith(good, keys, value),
    reason,
    field: name,
  });
  const wrongTypes = [7, true, null, {}, ...(leaf ? [[]] : [])];
  const tooBig = withValue("a number past 2^53", "past");
  const neighbour = { body: bodyWith(good, [...keys.slice(0, -1), "surprise"], 1), reason: "an unknown field" };
  return [
    ...wrongTypes
      .filter((value) => JSON.stringify(value) !== accepts)
      .map((value) => withValue(JSON.stringify(value), value)),
    ...Object.entries(badTexts).map(([reason, value]) => withValue(reason, value)),
    { ...tooBig, body: tooBig.body.replace('"past"', "9007199254740993") },
    ...(required ? [withValue("nothing at all", undefined)] : []),
    { ...good, ...neighbour, field: name.replace(/[^.]*$/, "surprise") },
  ];
}

/** The body with another value at one path; undefined removes the field. */
function bodyWith({ body }: HttpRequest, keys: readonly (string | number)[], value: unknown): string {
  const changed = JSON.parse(String(body));
  const holder = keys.slice(0, -1).reduce((inside, key) => inside[key], changed);
  holder[keys.at(-1) as string] = value;
  return JSON.stringify(changed);
}
