/**
 * Bad requests of every kind for any route. Each spoils one thing of a request that is otherwise good,
 * and says which field a refusal must name.
 */
import { goodRequest, type Route, type Schema, type Wish } from "./good-requests.ts";

export interface BadRequest extends Wish {
  readonly why: string;
  /** None where the request cannot be read as far as that. */
  readonly field?: string;
}

export const badRequests = (route: Route): BadRequest[] => [
  ...route.inPath.flatMap((name) => badPaths(route, name)),
  ...badQueries(route),
  ...(route.needsKey ? badKeys(route) : []),
  ...(route.body ? badBodies(route, route.body) : []),
];

function badPaths(route: Route, name: string): BadRequest[] {
  const spoilt = (value: string) => {
    const template = route.template.replace(`{${name}}`, value);
    return goodRequest({ ...route, template }); // The other names are filled in as ever.
  };
  return [
    { ...spoilt("a%00b"), why: "NUL in the path", field: `path.${name}` },
    { ...spoilt("x".repeat(200)), why: "too long in the path", field: `path.${name}` },
    { ...spoilt("%ff"), why: "bad UTF-8 in the path" },
    { ...spoilt("%ed%a0%80"), why: "a lone surrogate in the path" },
  ];
}

function badQueries(route: Route): BadRequest[] {
  const good = goodRequest(route);
  const asking = (query: string) => ({ ...good, path: `${good.path}?${query}` });
  return [
    { ...asking("surprise=1"), why: "an unknown question", field: "query.surprise" },
    { ...asking("surprise=%ff"), why: "bad UTF-8 in the query" },
    ...route.inQuery.flatMap(({ name, schema }) => [
      { ...asking(`${name}=a%00b`), why: "NUL in the query", field: `query.${name}` },
      { ...asking(`${name}=1&${name}=1`), why: "the same twice", field: `query.${name}` },
      { ...asking(`${name}=`), why: "nothing in the query", field: `query.${name}` },
      ...(schema.type === "integer"
        ? ["9007199254740993", "-1", "x"].map((value) => ({
            ...asking(`${name}=${value}`),
            why: `${value} in the query`,
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
    { ...good, headers: without, why: "no key", field },
    { ...withKey(""), why: "an empty key", field },
    { ...withKey("a b"), why: "a key with a space", field },
    { ...withKey("k".repeat(256)), why: "a key that is too long", field },
    { ...withKey("caf\u00e9"), why: "a key that is not ASCII", field },
  ];
}

function badBodies(route: Route, schema: Schema): BadRequest[] {
  const good = goodRequest(route);
  const text = String(good.body);
  const sending = (body: string | Uint8Array<ArrayBuffer>) => ({ ...good, body });
  return [
    ...fieldsOf(schema, "body").flatMap((field) => badFields(good, field)),
    { ...sending("[]"), why: "a list for a body", field: "body" },
    { ...sending("null"), why: "null for a body", field: "body" },
    { ...sending(text.slice(0, -1)), why: "half a body", field: "body" },
    { ...sending(`{"deep":${"[".repeat(2_000)}${"]".repeat(2_000)}}`), why: "a deep body", field: pastDepth },
    { ...sending(text.padEnd(1_100_000)), why: "an oversize body" },
    { ...sending(withStrayByte(text)), why: "bad UTF-8" },
    { ...good, headers: { ...good.headers, "content-type": "text/plain" }, why: "not called JSON" },
  ];
}

/** Where the 32 levels that a body may have are over. */
const pastDepth = `body.deep${"[0]".repeat(31)}`;

/** In the last text of the body. */
function withStrayByte(text: string): Uint8Array<ArrayBuffer> {
  const place = text.lastIndexOf('"');
  return Uint8Array.from([...Buffer.from(text.slice(0, place)), 0xff, ...Buffer.from(text.slice(place))]);
}

interface Field {
  /** As a refusal names it: body.items[0].user_id. */
  readonly name: string;
  readonly keys: readonly (string | number)[];
  readonly required: boolean;
  readonly leaf: boolean;
}

/** All that has a name in a body, whatever it holds. */
function fieldsOf(schema: Schema, name: string, keys: readonly (string | number)[] = []): Field[] {
  if (schema.items) return fieldsOf(schema.items, `${name}[0]`, [...keys, 0]);
  return Object.entries(schema.properties ?? {}).flatMap(([key, of]) => {
    const field = { name: `${name}.${key}`, keys: [...keys, key] };
    const required = schema.required?.includes(key) ?? false;
    const leaf = !of.items && !of.properties;
    return [{ ...field, required, leaf }, ...fieldsOf(of, field.name, field.keys)];
  });
}

const badTexts = { NUL: "a\0b", "a lone surrogate": "\ud800", nothing: "", "an endless text": "x".repeat(2_000) };

function badFields(good: Wish, { name, keys, required, leaf }: Field): BadRequest[] {
  const spoilt = (why: string, value: unknown) => ({ ...good, body: bodyWith(good, keys, value), why, field: name });
  const wrongTypes = [7, true, null, {}, ...(leaf ? [[]] : [])];
  const tooBig = spoilt("a number past 2^53", "past");
  const neighbour = { body: bodyWith(good, [...keys.slice(0, -1), "surprise"], 1), why: "an unknown field" };
  return [
    ...wrongTypes.map((value) => spoilt(JSON.stringify(value), value)),
    ...Object.entries(badTexts).map(([why, value]) => spoilt(why, value)),
    { ...tooBig, body: tooBig.body.replace('"past"', "9007199254740993") },
    ...(required ? [spoilt("nothing at all", undefined)] : []),
    { ...good, ...neighbour, field: name.replace(/[^.]*$/, "surprise") },
  ];
}

/** The same body with another value at one place; undefined takes it out. */
function bodyWith({ body }: Wish, keys: readonly (string | number)[], value: unknown): string {
  const changed = JSON.parse(String(body));
  const holder = keys.slice(0, -1).reduce((inside, key) => inside[key], changed);
  holder[keys.at(-1) as string] = value;
  return JSON.stringify(changed);
}
