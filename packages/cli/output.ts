/** The output of the command: lines and aligned tables, with colour on a terminal. */
import { AsyncLocalStorage } from "node:async_hooks";
import { styleText } from "node:util";

export type Style = "red" | "yellow" | "green";

/** Replaces stdout and stderr when a test runs a command in its own process. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
}

const redirected = new AsyncLocalStorage<Output>();

export const redirectOutput = <T>(output: Output, run: () => T): T => redirected.run(output, run);

/** Prints to stdout. */
export function print(text = ""): void {
  const output = redirected.getStore();
  if (output) output.out(`${text}\n`);
  else process.stdout.write(`${text}\n`);
}

/** Prints to stderr: errors and progress. */
export function printError(text: string): void {
  const output = redirected.getStore();
  if (output) output.err(`${text}\n`);
  else process.stderr.write(`${text}\n`);
}

/** Colours the text on a terminal, unless NO_COLOR is set. */
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

/** For text from elsewhere: control characters in it could manipulate the terminal. */
export const replaceControlCharacters = (text: string): string => text.replace(/(?!\n)\p{C}/gu, "�");

const lineMax = 60;

/** One line of at most `max` visible characters. */
export function oneLine(text: string, max = lineMax): string {
  const line = replaceControlCharacters(text).replace(/\s+/g, " ").trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** A database timestamp, cut to seconds. */
export const formatTime = (time: string): string => `${time.slice(0, 19)}Z`;

/** A time span in one unit: "45 s", "12 min", "3 h", "5 days". */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
