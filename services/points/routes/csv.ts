/**
 * Rows of a table as CSV (RFC 4180), safe to open in a spreadsheet: a text that it would take for a formula begins with an
 * apostrophe there. Numbers are left as they are.
 */

export type Cell = bigint | string | undefined;

export const csvRow = (cells: readonly Cell[]): string => `${cells.map(cellText).join(",")}\r\n`;

function cellText(cell: Cell): string {
  if (typeof cell !== "string") return cell === undefined ? "" : cell.toString();
  const inert = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

// Tab and carriage return too: spreadsheets drop them, and see what comes after.
const formula = /^[=+\-@\t\r]/;
