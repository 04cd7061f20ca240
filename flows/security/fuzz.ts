/** Almost valid requests: a valid request with one to three mutations, mostly one. The same seed makes the same requests. */
import type { Route, Schema } from "../good-requests.ts";

export interface Random {
  /** An integer from 0 to n - 1. */
  below(n: number): number;
  pick<T>(list: readonly T[]): T;
}

/** Mulberry32: small, and good enough to choose mutations. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const below = (n: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
  return { below, pick: (list) => list[below(list.length)] as (typeof list)[number] };
}

export interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** A valid request before mutation. */
export interface Parts {
  readonly inPath: Readonly<Record<string, string>>;
  readonly inQuery: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Cursors from responses of the service. */
  readonly cursors: readonly string[];
}

interface FullSchema extends Schema {
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly pattern?: string;
}

/** A valid value, as far as the schema and its examples tell; optional fields are present at random. */
export function goodValue(random: Random, name: string, schema: FullSchema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return random.pick(schema.enum);
  if (schema.examples) return random.pick(schema.examples);
  if (schema.anyOf) return goodValue(random, name, random.pick(schema.anyOf) as FullSchema);
  if (schema.properties) {
    const isPresent = (key: string) => schema.required?.includes(key) || random.below(2) === 0;
    const present = Object.entries(schema.properties).filter(([key]) => isPresent(key));
    return Object.fromEntries(present.map(([key, of]) => [key, goodValue(random, key, of)]));
  }
  if (schema.items) return [goodValue(random, name, schema.items)];
  switch (schema.type) {
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "boolean":
      return random.below(2) === 0;
    case "null":
      return null;
    case "object":
      return {};
    default:
      return goodText(name, schema.format);
  }
}

function goodText(name: string, format: string | undefined): string {
  if (format === "date-time") return "2999-01-01T00:00:00Z";
  return format === "uuid" || name.endsWith("_id") ? (ids[0] ?? "") : "good";
}

const base64url = (text: string) => Buffer.from(text).toString("base64url");

/** Invalid dates, and dates outside the range of PostgreSQL or JavaScript. */
const dates = [
  "2999-02-30T00:00:00Z",
  "2999-13-01T00:00:00.000000Z",
  "0000-00-00T00:00:00Z",
  "9999-99-99T99:99:99.999999Z",
  "+275760-09-13T00:00:00Z",
  "-271821-04-20T00:00:00Z",
  "2999-01-01T24:00:00Z",
  "2999-01-01T00:00:60Z",
  "2999-01-01",
  "1970-01-01T00:00:00+99:99",
  "infinity",
];

const ids = [
  "00000000-0000-7000-8000-000000000001",
  "00000000-0000-7000-8000-00000000000g",
  "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
  "9223372036854775808",
  "-9223372036854775809",
  "9007199254740993",
  "duel.AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
];

const texts = [
  "",
  " ",
  "0",
  "-1",
  "1e999",
  "0x10",
  "null",
  "true",
  "a\0b",
  "\ud800",
  "\u202e",
  "\u{1f3ae}".repeat(40),
  "é",
  "x".repeat(129),
  "x".repeat(5_000),
  "' or '1'='1",
  "%' escape '",
  "\\",
  '"',
  "../../etc/passwd",
  "{{7*7}}",
  "__proto__",
  "constructor",
  "a\r\nb",
  "*",
  "NaN",
  ...dates,
  ...ids,
];

/** Our cursors are base64url of times, numbers and names with separators. */
const cursorSeparators = [" ", ".", "_", "|", ",", "/", ":", "\n"];
const cursorTexts = [...dates, ...ids, "2026-11-16T00:00:00.000000Z", "1", "0", "-1", "u_1"];

/** Half of them are cursors of the service with one run of digits replaced. */
function fuzzedCursor({ below, pick }: Random, known: readonly string[]): string {
  if (known.length > 0 && below(2) === 0) {
    const text = Buffer.from(pick(known), "base64url").toString();
    const runs = [...text.matchAll(/\d+/g)];
    const run = runs.length > 0 ? pick(runs) : undefined;
    const digits = pick(["0", "00", "99", "9999", "32", "-1", "", "9".repeat(19), "9".repeat(40), "x"]);
    return base64url(
      run ? text.slice(0, run.index) + digits + text.slice(run.index + run[0].length) : `${text}${digits}`,
    );
  }
  if (below(4) === 0) return pick(texts);
  const parts = Array.from({ length: 1 + below(3) }, () => pick(cursorTexts));
  return base64url(below(4) === 0 ? JSON.stringify(parts) : parts.join(pick(cursorSeparators)));
}

const numbers = [0, -1, 1, 0.5, -0.1, 1e15, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 1e308, -1e308, 65_536];

/** Numbers that JSON.stringify would change, so they are inserted as text. */
const rawNumbers = [
  "9007199254740993",
  "9223372036854775808",
  "-0",
  "1e400",
  "1E-400",
  "01",
  "1.0",
  `1${"0".repeat(400)}`,
];

function fuzzedValue(random: Random): unknown {
  switch (random.below(8)) {
    case 0:
      return random.pick(numbers);
    case 1:
      return random.pick([null, true, false]);
    case 2:
      return random.pick([[], {}, [[]], [null], { a: 1 }, Array(200).fill("x"), { "": { "": "" } }]);
    case 3:
      return random.pick(dates);
    default:
      return random.pick(texts);
  }
}

/** Every path in a JSON value, as a list of keys. */
function listPaths(value: unknown, keys: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [keys];
  return [keys, ...Object.entries(value).flatMap(([key, inside]) => listPaths(inside, [...keys, key]))];
}

/** The value with another one at this path; undefined removes it. */
function setAt(value: unknown, [key, ...rest]: readonly (string | number)[], to: unknown): unknown {
  if (key === undefined) return to;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  const changed = setAt(copy[key], rest, to);
  if (changed === undefined && !Array.isArray(copy)) delete copy[key];
  else copy[key] = changed;
  return copy;
}

function mutatedBody(random: Random, body: unknown): unknown {
  const paths = listPaths(body);
  const path = random.pick(paths);
  switch (random.below(6)) {
    case 0:
      return setAt(body, path, undefined);
    case 1:
      return typeof body === "object" && body !== null && !Array.isArray(body)
        ? { ...body, [random.pick(["surprise", "user_id", "__proto_", "constructor", "version"])]: fuzzedValue(random) }
        : fuzzedValue(random);
    default:
      return setAt(body, path, fuzzedValue(random));
  }
}

/** The body as bytes, sometimes damaged: truncated, with an invalid byte, a duplicate field or a huge number. */
function toBytes(random: Random, body: unknown): string | Buffer {
  const text = JSON.stringify(body) ?? "";
  switch (random.below(12)) {
    case 0:
      return text.slice(0, random.below(text.length + 1));
    case 1: {
      const bytes = Buffer.from(text);
      if (bytes.length > 0) bytes[random.below(bytes.length)] = random.below(256);
      return bytes;
    }
    case 2:
      return text.replace(/^\{("[^"]*":)/, (whole, field) => `{${field}1,${whole.slice(1)}`);
    case 3:
      return text.replace(/:("(?:[^"\\]|\\.)*"|-?\d+)/, `:${random.pick(rawNumbers)}`);
    default:
      return text;
  }
}

const headerTexts = [
  "",
  " ",
  "a b",
  '"',
  '"unclosed',
  "caf\u00e9",
  "k".repeat(256),
  "1",
  "-1",
  "*",
  "null",
  ",",
  "\u00ff\u00fe",
];
const headerNames = [
  "idempotency-key",
  "if-match",
  "content-type",
  "content-encoding",
  "accept-language",
  "traceparent",
  "x-request-id",
  "last-event-id",
  "cookie",
];

interface Draft {
  inPath: Record<string, string>;
  inQuery: (readonly [string, string])[];
  headers: Record<string, string>;
  body: unknown;
}

type Mutation = (draft: Draft, random: Random) => void;

function listMutations(route: Route, parts: Parts): Mutation[] {
  const mutatePath: Mutation = ({ inPath }, random) => {
    inPath[random.pick(route.inPath)] = random.pick(texts);
  };
  const mutateQuery: Mutation = (draft, random) => {
    const { name } = random.pick(route.inQuery);
    const value = /cursor|last_event_id/.test(name) ? fuzzedCursor(random, parts.cursors) : random.pick(texts);
    draft.inQuery = [...draft.inQuery.filter(([each]) => each !== name || random.below(8) === 0), [name, value]];
  };
  const strayQuery: Mutation = ({ inQuery }, random) => void inQuery.push([random.pick(texts), random.pick(texts)]);
  const mutateHeader: Mutation = ({ headers }, random) => {
    headers[random.pick(headerNames)] = random.pick(headerTexts);
  };
  const droppable = Object.keys(parts.headers).filter((name) => name !== "authorization");
  const dropHeader: Mutation = ({ headers }, random) => void delete headers[random.pick(droppable)];
  const changeBody: Mutation = (draft, random) => {
    draft.body = mutatedBody(random, draft.body);
  };
  return [
    ...(route.inPath.length > 0 ? [mutatePath, mutatePath] : []),
    ...(route.inQuery.length > 0 ? Array<Mutation>(5).fill(mutateQuery) : []),
    ...(parts.body === undefined ? [] : Array<Mutation>(8).fill(changeBody)),
    strayQuery,
    mutateHeader,
    ...(droppable.length > 0 ? [dropHeader] : []),
  ];
}

/** A lone surrogate becomes the invalid bytes that a careless client sends. */
function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : "%ed%a0%80";
}

export function fuzzedRequest(route: Route, parts: Parts, random: Random): FuzzedRequest {
  const draft: Draft = {
    ...parts,
    inPath: { ...parts.inPath },
    inQuery: [...parts.inQuery],
    headers: { ...parts.headers },
    body: parts.body,
  };
  const mutations = listMutations(route, parts);
  for (let n = random.pick([1, 1, 1, 2, 3]); n > 0; n--) random.pick(mutations)(draft, random);
  return buildRequest(route, draft, parts.body === undefined ? undefined : toBytes(random, draft.body));
}

export const goodRequest = (route: Route, parts: Parts): FuzzedRequest =>
  buildRequest(route, parts, parts.body === undefined ? undefined : JSON.stringify(parts.body));

function buildRequest(
  route: Route,
  { inPath, inQuery, headers }: Pick<Parts, "inPath" | "inQuery" | "headers">,
  body: string | Buffer | undefined,
) {
  const filled = Object.entries(inPath).reduce(
    (path, [name, value]) => path.replace(`{${name}}`, () => encode(value)),
    route.template,
  );
  const query = inQuery.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  return {
    method: route.method,
    path: query ? `${filled}?${query}` : filled,
    headers,
    ...(body !== undefined && { body }),
  };
}
