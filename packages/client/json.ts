/**
 * JSON with exact integers. A property that the API documents declare as int64 is a bigint, whatever its value: its type does
 * not change with the player.
 */
import { freeNames, int64Names } from "./gen/operations.ts";

const exact: ReadonlySet<string> = new Set(int64Names);
const free: ReadonlySet<string> = new Set(freeNames);

/** Newer engines pass the digits of a number as they were received. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

const revive: Reviver = (name, value, context) => {
  if (free.has(name)) return withNumbers(value);
  if (typeof value !== "number" || !exact.has(name)) return value;
  const digits = context?.source;
  if (digits !== undefined) return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
  if (!Number.isInteger(value)) return value;
  // An engine without source texts has rounded it already.
  if (!Number.isSafeInteger(value))
    throw new RangeError(`${name} is past 2^53, and this engine cannot read it exactly`);
  return BigInt(value);
};

/** The reviver reads properties before their object, so it may have converted numbers whose names are the caller's. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withNumbers);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withNumbers(each)]));
}

export const parseJson = (text: string): unknown =>
  JSON.parse(text, revive as (key: string, value: unknown) => unknown);

/** The services accept an int64 as a string of digits, which every engine can write exactly. */
export const formatJson = (value: unknown): string =>
  JSON.stringify(value, (_name, each) => (typeof each === "bigint" ? String(each) : each));
