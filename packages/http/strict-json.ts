/**
 * Reads JSON bodies without changing or guessing anything.
 *
 * An accepted text means the same to every reader: valid UTF-8 without a byte order mark, no duplicate field, no number that a
 * double would round, no control characters, no lone surrogates (PostgreSQL can store neither), and depth and size
 * within bounds. Every rejection names the field. The value is exactly that of JSON.parse; but a route that accepts integers
 * of any length (`config.longIntegers`) gets those that a double would round as a string of digits.
 *
 * Plain JSON must be cheap. So JSON.parse reads the text, one pass over the bytes looks for anything suspicious, and only then
 * the exact reader (json-error.ts) runs.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isLongInteger } from "./exact-number.ts";
import { depthMax, findJsonError, itemsMax, type ReadOptions } from "./json-error.ts";
import { invalidRequest, malformedJson, unsupportedMediaType } from "./problems.ts";

/** Accepts JSON bodies only, and reads them strictly. */
export function useStrictJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, bytes: Buffer, done) => {
    rejectOtherEncodings(request);
    done(null, parseStrictJson(bytes, request.routeOptions.config));
  });
}

const utf8Json = /^application\/json(?:[ \t]*;[ \t]*charset=(?:utf-8|"utf-8"))?[ \t]*;?[ \t]*$/i;

function rejectOtherEncodings({ headers }: FastifyRequest): void {
  const type = headers["content-type"] ?? "";
  if (type !== "application/json" && !utf8Json.test(type)) {
    throw unsupportedMediaType("send the body as application/json in UTF-8");
  }
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw unsupportedMediaType("send the body without a content-encoding; compressed bodies are not accepted");
  }
}

// Keeps a byte order mark, so that it can be rejected, and throws at invalid UTF-8.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value of a JSON text, or a Problem that names the field. */
export function parseStrictJson(bytes: Uint8Array, options: ReadOptions = {}): unknown {
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw rejection(text, options) ?? malformedJson("the body is not JSON");
  }
  if (!isClearlyFine(bytes, value)) {
    const rejected = rejection(text, options);
    if (rejected) throw rejected;
    if (options.longIntegers) return JSON.parse(text, longIntegerAsText);
  }
  return value;
}

/** For JSON.parse, which passes the source text of a number; TypeScript does not know that yet. */
function longIntegerAsText(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? "";
  return typeof value === "number" && isLongInteger(source) ? source : value;
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformedJson("the body is not valid UTF-8");
  }
}

function rejection(text: string, options: ReadOptions) {
  const error = findJsonError(text, options);
  if (!error) return undefined;
  const { wellFormed, field, detail } = error;
  const kind = wellFormed ? invalidRequest : malformedJson;
  return kind(`${field} ${detail}`, { fields: [{ field, detail }] });
}

/** True is certain; false is only a suspicion. */
function isClearlyFine(bytes: Uint8Array, value: unknown): boolean {
  const fields = fieldsOfPlainJson(bytes);
  return fields !== suspicious && fields === distinctFields(value);
}

const suspicious = -1;

// The characters that the pass over the bytes looks for.
const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Counts the fields of a text that JSON.parse has accepted, duplicates included; or `suspicious` if the exact reader must
 * look. Bytes beyond ASCII occur only inside strings and need no check.
 */
function fieldsOfPlainJson(bytes: Uint8Array): number {
  const end = bytes.length;
  let fields = 0;
  let items = 0;
  let depth = 0;
  for (let at = 0; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      at = endOfPlainString(bytes, at + 1);
      if (at === suspicious) return suspicious;
    } else if (byte === colon) {
      fields++;
    } else if (byte === comma) {
      items++;
    } else if (byte === openBrace || byte === openBracket) {
      items++;
      if (++depth > depthMax) return suspicious;
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--;
    } else if (byte >= minus && byte <= nine) {
      at = endOfPlainNumber(bytes, at);
      if (at === suspicious) return suspicious;
    }
  }
  return items > itemsMax ? suspicious : fields;
}

/** The index of the closing quote. */
function endOfPlainString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] !== quote) {
    if (bytes[at] === backslash) {
      if (!isPlainEscape(bytes, at + 1)) return suspicious;
      at++;
    }
    at++;
  }
  return at;
}

/** Not \b or \f, no control character or surrogate in \uXXXX. An ordinary letter in that form is fine. */
function isPlainEscape(bytes: Uint8Array, at: number): boolean {
  const sign = bytes[at];
  if (sign === 0x62 || sign === 0x66) return false;
  if (sign !== 0x75) return true;
  const first = (bytes[at + 1] as number) | 0x20;
  return first !== 0x64 && !(bytes[at + 1] === zero && bytes[at + 2] === zero && (bytes[at + 3] as number) < 0x32);
}

const plainDigitsMax = 15; // A double holds every decimal of 15 digits exactly.

/** The index of the last digit. Exponents, and a minus before a zero, are left to the exact reader. */
function endOfPlainNumber(bytes: Uint8Array, from: number): number {
  if (bytes[from] === minus && bytes[from + 1] === zero) return suspicious;
  let at = from + 1;
  while (isDigitOrDot(bytes[at] ?? 0)) at++;
  if (at - from > plainDigitsMax || ((bytes[at] ?? 0) | 0x20) === 0x65) return suspicious;
  return at - 1;
}

// The slash, between the dot and the zero, cannot occur in a number.
const isDigitOrDot = (byte: number) => byte >= dot && byte <= nine;

/** A duplicate leaves one field: then this is smaller than the count of the text. NaN for a suspicious name. */
function distinctFields(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let fields = 0;
  if (Array.isArray(value)) {
    for (const element of value) fields += distinctFields(element);
    return fields;
  }
  for (const key in value) {
    if (key === "__proto__" || key === "constructor") return Number.NaN;
    fields += 1 + distinctFields(value[key as keyof typeof value]);
  }
  return fields;
}

declare module "fastify" {
  interface FastifyContextConfig extends ReadOptions {}
}
