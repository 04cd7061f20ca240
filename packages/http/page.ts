/**
 * Lists go by pages: a cursor names the last thing of the page before, so that nothing is skipped or shown twice when
 * others write meanwhile. What is in a cursor is our business: callers hand it back as they got it.
 */
import { Type } from "typebox";
import { invalidRequest } from "./problems.ts";

const pageMax = 1_000;
const pageUsual = 100;

export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: pageMax, description: `At most; ${pageUsual} if not given.` }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_024, description: "next_cursor of the page before." }),
  ),
};

export const NextCursor = Type.Optional(
  Type.String({ description: "There is more: ask for it with this as `cursor`." }),
);

/** Reads one row more than the page has: whether there is more is then known without a count. */
export async function page<Row>(
  query: { readonly limit?: number; readonly cursor?: string },
  { read, name }: { read: (limit: number) => Promise<Row[]>; name: (row: Row) => string },
): Promise<{ rows: Row[]; next_cursor?: string }> {
  const limit = query.limit ?? pageUsual;
  const found = await read(limit + 1);
  const last = found[limit - 1];
  if (found.length <= limit || last === undefined) return { rows: found };
  return { rows: found.slice(0, limit), next_cursor: Buffer.from(name(last)).toString("base64url") };
}

/** What one part of a cursor may be. Each accepts only what PostgreSQL can convert: no cursor fails in a statement. */
const isPart = {
  /** A time as `utcText` writes it: 2026-01-31T09:30:00.000000Z. */
  timeMicros: (text: string) => isTime(text, 6),
  timeMillis: (text: string) => isTime(text, 3),
  /** Microseconds since 1970, in the range of a timestamptz. */
  epochMicros: (text: string) => /^-?\d{1,16}$/.test(text),
  int: (text: string) => /^[1-9]\d{0,9}$/.test(text) && Number(text) < 2 ** 31,
  bigint: (text: string) => /^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n,
  uuid: (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  text: (text: string) => /^[^\0]{1,256}$/.test(text),
};

type CursorPart = keyof typeof isPart;

/** A pattern alone would let the 30th of February pass, which the database refuses. */
function isTime(text: string, fractionalSecondDigits: 3 | 6): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/.test(text) || text.startsWith("0000")) return false;
  try {
    return Temporal.Instant.from(text).toString({ fractionalSecondDigits }) === text;
  } catch {
    return false;
  }
}

export interface CursorForm {
  readonly parts: readonly CursorPart[];
  /** Between the parts; a space unless another is given. */
  readonly separator?: string;
}

/**
 * The parts of a cursor that `page` made, or undefined where none was given. The only place that reads cursors: whatever
 * `page` could not have made is refused with 400.
 */
export function cursorOf(query: { readonly cursor?: string }, form: CursorForm): readonly string[] | undefined {
  const { parts, separator = " " } = form;
  if (query.cursor === undefined) return undefined;
  const bytes = Buffer.from(query.cursor, "base64url");
  const text = bytes.toString("utf8");
  const found = parts.length === 1 ? [text] : text.split(separator);
  const ours =
    // Whatever does not come back the same was not made here.
    bytes.toString("base64url") === query.cursor &&
    Buffer.from(text).equals(bytes) &&
    found.length === parts.length &&
    parts.every((part, index) => isPart[part](found[index] ?? ""));
  if (ours) return found;
  const detail = "must be the next_cursor of the page before, unchanged";
  throw invalidRequest(`query.cursor ${detail}`, { fields: [{ field: "query.cursor", detail }] });
}
