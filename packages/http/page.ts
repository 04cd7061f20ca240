/**
 * Lists are paged by cursor: it names the last row of the previous page, so that nothing is skipped or repeated while others
 * write. Cursors are opaque to callers.
 */
import { Type } from "typebox";
import { invalidField } from "./problems.ts";

const pageMax = 1_000;
const defaultLimit = 100;

export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({
      title: "PageLimit",
      minimum: 1,
      maximum: pageMax,
      description: `Rows per page at most; the default is ${defaultLimit}.`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      title: "PageCursor",
      minLength: 1,
      maxLength: 1_024,
      description: "The `next_cursor` of the previous page. Without it, the first page is returned.",
    }),
  ),
};

export const NextCursor = Type.Optional(
  Type.String({ description: "Set if there are more rows: send it as `cursor`." }),
);

/** Reads one row more than the page has, to know whether there is a next page. */
export async function page<Row>(
  query: { readonly limit?: number; readonly cursor?: string },
  { read, name }: { read: (limit: number) => Promise<Row[]>; name: (row: Row) => string },
): Promise<{ rows: Row[]; next_cursor?: string }> {
  const limit = query.limit ?? defaultLimit;
  const found = await read(limit + 1);
  const last = found[limit - 1];
  if (found.length <= limit || last === undefined) return { rows: found };
  return { rows: found.slice(0, limit), next_cursor: Buffer.from(name(last)).toString("base64url") };
}

/** The types of a cursor's parts. Each accepts only what PostgreSQL can convert, so that no cursor fails in a statement. */
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

/** A pattern alone would accept the 30th of February, which the database rejects. */
function isTime(text: string, fractionalSecondDigits: 3 | 6): boolean {
  const [, seconds = "", fraction = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d+)Z$/.exec(text) ?? [];
  if (fraction.length !== fractionalSecondDigits || seconds.startsWith("0000")) return false;
  const at = new Date(`${seconds}Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(seconds);
}

export interface CursorForm {
  readonly parts: readonly CursorPart[];
  /** Between the parts; a space by default. */
  readonly separator?: string;
}

/**
 * The parts of a cursor that `page` made; undefined without one. Any other text is rejected with 400.
 */
export function parseCursor(query: { readonly cursor?: string }, form: CursorForm): readonly string[] | undefined {
  const { parts, separator = " " } = form;
  if (query.cursor === undefined) return undefined;
  const bytes = Buffer.from(query.cursor, "base64url");
  const text = bytes.toString("utf8");
  const found = parts.length === 1 ? [text] : text.split(separator);
  const ours =
    // A cursor that does not encode to the same text was not made here.
    bytes.toString("base64url") === query.cursor &&
    Buffer.from(text).equals(bytes) &&
    found.length === parts.length &&
    parts.every((part, index) => isPart[part](found[index] ?? ""));
  if (ours) return found;
  throw invalidField("query.cursor", "must be the next_cursor of the previous page, unchanged");
}
