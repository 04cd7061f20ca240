/**
 * Reads JSON bodies without changing or guessing anything.
 *
 * An accepted text means the same to every reader: valid UTF-8 without a byte order mark, no duplicate field, no number that a
 * double would round, no control characters, no lone surrogates (PostgreSQL can store neither), and depth and size
 * within bounds. Every rejection names the field. The value is exactly that of JSON.parse; but a route that accepts integers
 * of any length (`config.longIntegers`) gets those that a double would round as a string of digits.
 *
 * Plain JSON must be cheap. So JSON.parse reads the text, two regular expressions look for anything suspicious, and only then
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
  if (!isClearlyFine(text, value)) {
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

// A string that needs no closer look. The exact reader looks at \b, \f, and at control characters and surrogates in \uXXXX.
// Unrolled, so that a long string costs one step per escape.
const plainString = /"[^"\\]*(?:\\(?:["\\/nrt]|u(?!00[01]|[dD]))[^"\\]*)*"/g;
// Besides plain strings: another string, a minus before a zero, an exponent, more digits than a double always holds exactly.
const suspicious = /"|-0|\d[eE]|[-\d.]{16}/;

/** True is certain; false is only a suspicion. JSON.parse has read `value` from `text`. */
function isClearlyFine(text: string, value: unknown): boolean {
  let fields = 0;
  let elements = 0;
  const isPlain = (each: unknown, depth: number): boolean => {
    if (typeof each !== "object" || each === null) return true;
    if (depth === depthMax) return false;
    if (Array.isArray(each)) {
      elements += each.length;
      for (const element of each) if (!isPlain(element, depth + 1)) return false;
      return true;
    }
    for (const key in each) {
      fields++;
      if (key === "__proto__" || key === "constructor") return false;
      if (!isPlain(each[key as keyof typeof each], depth + 1)) return false;
    }
    return true;
  };
  if (!isPlain(value, 0) || fields + elements > itemsMax) return false;
  const bare = text.replace(plainString, "");
  if (suspicious.test(bare)) return false;
  for (let at = bare.indexOf(":"); at !== -1; at = bare.indexOf(":", at + 1)) fields--;
  return fields === 0; // Of a field that is given twice, `value` has one.
}

declare module "fastify" {
  interface FastifyContextConfig extends ReadOptions {}
}
