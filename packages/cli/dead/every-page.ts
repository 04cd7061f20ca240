/** Goes through all dead rows that a filter leaves, page by page, up to a bound. */
import type { DeadLetter, DeadLetterPage, DeadLetters } from "@todoke/kernel/dead-letters";
import type { DeadOf } from "./open.ts";

/** A page is redriven in one transaction: no row is to be locked for long. */
const pageMax = 500;
/** What one call takes at the most, so that somebody looks before the next ten thousand. */
const rowsMax = 10_000;

export interface Seen {
  readonly rows: readonly (DeadLetter & { readonly table: string })[];
  /** There are more than one call takes. */
  readonly more: boolean;
}

/** Pages go by a cursor, so that a row which is redriven and fails again meanwhile is not met twice. */
export async function everyPage(
  { db, tables }: DeadOf,
  filter: Pick<DeadLetterPage, "eventType" | "error">,
  each: (table: DeadLetters, rows: readonly DeadLetter[]) => Promise<void> = async () => {},
): Promise<Seen> {
  const rows: (DeadLetter & { table: string })[] = [];
  for (const table of tables) {
    for (let after = "0", last = false; !last; ) {
      const limit = Math.min(pageMax, rowsMax - rows.length);
      const page = await table.list(db, { limit: limit + 1, after, ...filter });
      const taken = page.slice(0, limit);
      if (taken.length > 0) await each(table, taken);
      rows.push(...taken.map((row) => ({ ...row, table: table.name })));
      last = page.length <= limit;
      if (!last && rows.length >= rowsMax) return { rows, more: true };
      after = taken.at(-1)?.cursor ?? after;
    }
  }
  return { rows, more: false };
}
