/** CSV (RFC 4180) that is safe to open in a spreadsheet: a text that looks like a formula is prefixed with an apostrophe. */

export type Cell = bigint | string | undefined;

export const csvRow = (cells: readonly Cell[]): string => `${cells.map(formatCell).join(",")}\r\n`;

function formatCell(cell: Cell): string {
  if (typeof cell !== "string") return cell === undefined ? "" : cell.toString();
  const escaped = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
}

// Tab and carriage return too: spreadsheets drop them and read what follows.
const formula = /^[=+\-@\t\r]/;
