/** A statement as CSV, in parts. A part is read once the previous one is consumed, so a slow client uses little memory. */
import type { StatementRow } from "../store/statement.ts";
import { csvRow } from "./csv.ts";

export const rowsMax = 1_000_000;
const partRows = 1_000;

const columns = [
  "version",
  "created_at",
  "kind",
  "point_amount",
  "moved",
  "balance",
  "held",
  "from_account",
  "to_account",
  "reason",
  "source",
  "source_id",
  "refers_to",
  "transaction_id",
  "user_id",
] as const satisfies readonly (keyof StatementRow)[];

export interface Part {
  /** The version of the last row of the previous part. */
  readonly before?: string;
  readonly limit: number;
}

/** The first part includes the header row. */
export async function* statementCsv(
  read: (part: Part) => Promise<readonly StatementRow[]>,
  limit = rowsMax,
): AsyncGenerator<string, undefined> {
  let text = csvRow(columns);
  let part: Part = { limit: Math.min(partRows, limit) };
  for (let left = limit; left > 0; ) {
    const rows = await read(part);
    text += rows.map((row) => csvRow(columns.map((column) => row[column]))).join("");
    if (text !== "") yield text;
    const last = rows.at(-1);
    if (last === undefined || rows.length < part.limit) return;
    text = "";
    left -= rows.length;
    part = { before: String(last.version), limit: Math.min(partRows, left) };
  }
}
