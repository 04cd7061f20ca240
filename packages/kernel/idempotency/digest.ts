/** Digests of request bodies: SHA-256 of the canonical JSON of RFC 8785, so that equal values have equal digests. */
import { hash } from "node:crypto";

/** Members sorted by UTF-16 code units, no white space, numbers and strings as ECMAScript serializes them. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value))
    return `[${value.map((each) => canonicalJson(each === undefined ? null : each)).join(",")}]`;
  if (value !== null && typeof value === "object") return canonicalObject(value as Record<string, unknown>);
  return JSON.stringify(value);
}

function canonicalObject(value: Record<string, unknown>): string {
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`);
  return `{${members.join(",")}}`;
}

/** The digest of a JSON value; undefined counts as null. */
export function digestJson(value: unknown): Buffer {
  return hash("sha256", canonicalJson(value ?? null), "buffer");
}
