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

/** What a cursor of ours holds, or undefined where none was given; `form` is what it must look like. */
export function cursorOf({ cursor }: { readonly cursor?: string }, form: RegExp): string | undefined {
  if (cursor === undefined) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  const text = bytes.toString("utf8");
  // Whatever does not come back the same was not made here.
  const ours = bytes.toString("base64url") === cursor && Buffer.from(text).equals(bytes) && form.test(text);
  if (ours) return text;
  const detail = "must be the next_cursor of the page before, unchanged";
  throw invalidRequest(`query.cursor ${detail}`, { fields: [{ field: "query.cursor", detail }] });
}
