/** Formats dead letters for a terminal. Their content is untrusted, so control characters are replaced. */
import type { DeadLetter, Redrive } from "@todoke/kernel/dead-letters";
import { formatTime, oneLine, plural, replaceControlCharacters, table } from "../output.ts";

export function formatDeadLetters(rows: readonly DeadLetter[]): string {
  const head = ["id", "type", "about", "attempts", "since", "last error"];
  return table([head, ...rows.map(cells)]);
}

const cells = ({ id, event_type, about, attempt_count, since, last_error }: DeadLetter): string[] => [
  id,
  oneLine(event_type),
  oneLine(about),
  String(attempt_count),
  formatTime(since),
  oneLine(last_error ?? ""),
];

/** One field per line. An object is printed as JSON, indented below its name. */
export function formatFields(row: object): string {
  const width = Math.max(...Object.keys(row).map((name) => name.length));
  return Object.entries(row)
    .map(([name, value]) => `  ${name.padEnd(width)}   ${indent(formatValue(value), width + 5)}`.trimEnd())
    .join("\n");
}

function formatValue(value: unknown): string {
  if (value === null) return "";
  return replaceControlCharacters(typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));
}

const indent = (text: string, by: number): string => text.replaceAll("\n", `\n${" ".repeat(by)}`);

export const formatRedriveRecord = ({ redriven_at, redriven_by, reason, attempt_count, last_error }: Redrive): string =>
  `  ${formatTime(redriven_at)}   ${oneLine(redriven_by)}: ${oneLine(reason, 500)}` +
  ` (after ${plural(attempt_count, "attempt")}${last_error ? `: ${oneLine(last_error)}` : ""})`;
