/** The --limit option of commands that print pages. */
import type { Invocation } from "./command.ts";
import { UsageError } from "./errors.ts";

const limitDefault = 50;
const limitMax = 1_000;

export function parseLimit({ limit: given }: Invocation["values"]): number {
  const limit = Number(given ?? limitDefault);
  if (Number.isInteger(limit) && limit >= 1 && limit <= limitMax) return limit;
  throw new UsageError(`--limit is a number from 1 to ${limitMax}.`);
}
