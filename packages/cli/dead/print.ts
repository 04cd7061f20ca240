/** Dead rows on a screen. What they hold came from elsewhere, so nothing of it may steer the terminal. */
import type { DeadLetter, Redrive } from "@todoke/kernel/dead-letters";
import { oneLine, plural, table, toSeconds, visible } from "../output.ts";

export function rowsTable(rows: readonly DeadLetter[]): string {
  const head = ["id", "type", "about", "attempts", "since", "last error"];
  return table([head, ...rows.map(cells)]);
}

const cells = ({ id, event_type, about, attempt_count, since, last_error }: DeadLetter): string[] => [
  id,
  oneLine(event_type),
  oneLine(about),
  String(attempt_count),
  toSeconds(since),
  oneLine(last_error ?? ""),
];

/** Fields one under the other; what is not a plain value as JSON, indented below its name. */
export function fields(row: object): string {
  const width = Math.max(...Object.keys(row).map((name) => name.length));
  return Object.entries(row)
    .map(([name, value]) => `  ${name.padEnd(width)}   ${indented(textOf(value), width + 5)}`.trimEnd())
    .join("\n");
}

function textOf(value: unknown): string {
  if (value === null) return "";
  return visible(typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));
}

const indented = (text: string, by: number): string => text.replaceAll("\n", `\n${" ".repeat(by)}`);

export const redriveLine = ({ redriven_at, redriven_by, reason, attempt_count, last_error }: Redrive): string =>
  `  ${toSeconds(redriven_at)}   ${oneLine(redriven_by)}: ${oneLine(reason, 500)}` +
  ` (after ${plural(attempt_count, "attempt")}${last_error ? `: ${oneLine(last_error)}` : ""})`;
