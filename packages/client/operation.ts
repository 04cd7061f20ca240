/** An operation of the API, as a line of gen/operations.ts describes it, and the requests that it makes. */
import { formatJson } from "./json.ts";
import type { CommandOptions, ConditionalOptions, Context } from "./options.ts";

export interface Operation {
  /** For errors: "points.spend". */
  readonly name: string;
  readonly method: string;
  /** With the names of its parameters: "/v1/users/{user_id}". */
  readonly path: string;
  readonly hasBody: boolean;
  /** It has an idempotency key, in the header. */
  readonly hasKey: boolean;
  /** The body repeats the key. */
  readonly hasKeyInBody: boolean;
  /** Sending the same request again has no further effect. */
  readonly isRepeatable: boolean;
  /** It only reads. */
  readonly isRead: boolean;
  /** It returns text, not JSON. */
  readonly isText: boolean;
  readonly isStream: boolean;
  /** Its method takes options only. */
  readonly hasParams: boolean;
  /** The property of a page that has its items. */
  readonly items: string | undefined;
}

/** Parses "POST /v1/points/additions body key". */
export function parseOperation(name: string, line: string): Operation {
  const [method = "", path = "", ...flags] = line.split(" ");
  const has = (flag: string) => flags.includes(flag);
  return {
    name,
    method,
    path,
    hasBody: has("body"),
    hasKey: has("key"),
    hasKeyInBody: has("body-key"),
    isRead: method === "GET",
    isRepeatable: has("key") || has("item-keys") || method === "GET" || method === "PUT" || method === "DELETE",
    isText: has("text"),
    isStream: has("stream"),
    hasParams: !has("no-params"),
    items: flags.find((flag) => flag.startsWith("items="))?.slice(6),
  };
}

export type Params = Readonly<Record<string, unknown>>;

/** Builds the same request for every attempt: a Request can be sent once. */
export function requestBuilder(
  operation: Operation,
  context: Context,
  {
    params,
    key,
    ifMatch,
  }: { readonly params: Params; readonly key?: string | undefined } & Pick<ConditionalOptions, "ifMatch">,
): (signal: AbortSignal) => Request {
  const rest = { ...params };
  const path = operation.path.replace(/\{(\w+)\}/g, (_text, name: string) => {
    const value = pathPart(name, rest[name]);
    delete rest[name];
    return value;
  });
  const headers = new Headers(context.headers);
  if (key !== undefined) headers.set("idempotency-key", key);
  if (ifMatch !== undefined) headers.set("if-match", ifMatch);
  if (operation.hasBody) headers.set("content-type", "application/json");
  const body = operation.hasBody
    ? formatJson({ ...rest, ...(operation.hasKeyInBody && { idempotency_key: key }) })
    : null;
  const url = context.baseUrl + path + (operation.hasBody ? "" : toSearch(rest));
  return (signal) => new Request(url, { method: operation.method, headers, body, signal, redirect: "manual" });
}

/** Rejects "." and "..", which would change the path. */
function pathPart(name: string, value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  if (/^\.{0,2}$/.test(text))
    throw new TypeError(`${name} must be a text that a path can have, and is ${JSON.stringify(text)}`);
  return encodeURIComponent(text);
}

function toSearch(values: Params): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length > 0 ? `?${search}` : "";
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The key of a call, or undefined for an operation without one. */
export const keyOf = ({ hasKey }: Operation, { key }: CommandOptions): string | undefined =>
  hasKey ? (key ?? newKey()) : undefined;
