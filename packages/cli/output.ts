/** How the command speaks: plain lines and aligned tables, in colour only where a person reads them. */
import { styleText } from "node:util";

export type Style = "red" | "yellow" | "green" | "bold" | "dim";

/** What was asked for. */
export function say(text = ""): void {
  process.stdout.write(`${text}\n`);
}

/** What went wrong. */
export function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** In colour on a terminal, unless NO_COLOR asks for none; as it is elsewhere. */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(style, text, { stream, validateStream: true });
}

/** Rows in aligned columns, indented by two. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("   ")}`.trimEnd()).join("\n");
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
