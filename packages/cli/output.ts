/** How the command speaks: plain lines and aligned tables, in colour only where a person reads them. */
import { AsyncLocalStorage } from "node:async_hooks";
import { styleText } from "node:util";

export type Style = "red" | "yellow" | "green" | "bold" | "dim";

/** Where a command prints, if not to the process's own streams: a test runs commands in its own process. */
export interface Screen {
  out(text: string): void;
  err(text: string): void;
}

const screens = new AsyncLocalStorage<Screen>();

export const printingTo = <T>(screen: Screen, run: () => T): T => screens.run(screen, run);

/** What was asked for. */
export function say(text = ""): void {
  const screen = screens.getStore();
  if (screen) screen.out(`${text}\n`);
  else process.stdout.write(`${text}\n`);
}

/** What went wrong. */
export function complain(text: string): void {
  const screen = screens.getStore();
  if (screen) screen.err(`${text}\n`);
  else process.stderr.write(`${text}\n`);
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

/** Text that came from elsewhere: nothing of it may steer the terminal. */
export const visible = (text: string): string => text.replace(/(?!\n)\p{C}/gu, "�");

const lineMax = 60;

/** One line of at most `max` characters, of characters that can be seen. */
export function oneLine(text: string, max = lineMax): string {
  const line = visible(text).replace(/\s+/g, " ").trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** A time of the database, as exact as a person wants it. */
export const toSeconds = (time: string): string => `${time.slice(0, 19)}Z`;
