/** Reads all dead letters that match a filter, page by page, up to a bound. */
import type { DeadLetter, DeadLetterPage, DeadLetters } from "@todoke/kernel/dead-letters";
import type { ServiceDeadLetters } from "./with-dead-letters.ts";

/** A page is redriven or discarded in one transaction; a small page keeps rows locked only briefly. */
const pageMax = 500;
/** Bound of one command, so that an operator checks the result before the next ten thousand. */
const rowsMax = 10_000;

export interface FoundDeadLetters {
  readonly rows: readonly (DeadLetter & { readonly table: string })[];
  /** There are more than `rowsMax`. */
  readonly more: boolean;
}

/** Pages follow a cursor, so that a row that is redriven and fails again is not read twice. */
export async function eachPage(
  { db, tables }: ServiceDeadLetters,
  filter: Pick<DeadLetterPage, "eventType" | "error" | "user">,
  each: (table: DeadLetters, rows: readonly DeadLetter[]) => Promise<void> = async () => {},
): Promise<FoundDeadLetters> {
  const rows: (DeadLetter & { table: string })[] = [];
  for (const table of tables) {
    for (let after = "0", last = false; !last; ) {
      const limit = Math.min(pageMax, rowsMax - rows.length);
      const page = await table.list(db, { limit: limit + 1, after, ...filter });
      const pageRows = page.slice(0, limit);
      if (pageRows.length > 0) await each(table, pageRows);
      rows.push(...pageRows.map((row) => ({ ...row, table: table.name })));
      last = page.length <= limit;
      if (!last && rows.length >= rowsMax) return { rows, more: true };
      after = pageRows.at(-1)?.cursor ?? after;
    }
  }
  return { rows, more: false };
}
