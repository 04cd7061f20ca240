/** Output of `todoke dead redrive`: what it has redriven, or would redrive. */
import { oneLine, plural, table } from "../output.ts";
import type { FoundDeadLetters } from "./each-page.ts";

export interface DeadLetterId {
  readonly table: string;
  readonly id: string;
}

export interface RedriveResult {
  readonly redriven: readonly DeadLetterId[];
  /** Named on the command line, but no longer dead. */
  readonly left: readonly DeadLetterId[];
  readonly more: boolean;
}

/** More ids do not fit a screen. --json prints all. */
const idsShownMax = 20;

export function formatRedrive({ redriven, left, more }: RedriveResult, json: boolean): string {
  if (json) return JSON.stringify({ redriven, left, more }, null, 2);
  const lines =
    redriven.length > 0 && redriven.length <= idsShownMax ? [table(redriven.map((row) => [row.table, row.id]))] : [];
  lines.push(`${plural(redriven.length, "dead letter")} redriven.`);
  if (left.length > 0) lines.push(`No longer dead, and skipped: ${left.map(({ id }) => id).join(", ")}.`);
  if (more) lines.push("There are more. Run the command again to redrive them.");
  return lines.join("\n");
}

/** What --yes would redrive, counted by table, type and error. */
export function formatPreview(
  { rows, more }: FoundDeadLetters,
  { service, json }: { service: string; json: boolean },
): string {
  if (json) return JSON.stringify({ would_redrive: rows.map(({ table, id }) => ({ table, id })), more }, null, 2);
  if (rows.length === 0) return "No dead letter matches the filters.";
  const kinds = Map.groupBy(rows, ({ table, event_type, last_error }) =>
    [table, oneLine(event_type), oneLine(last_error ?? "")].join("\n"),
  );
  const counted = [...kinds].map(([kind, { length }]) => ({ kind, length })).sort((a, b) => b.length - a.length);
  return [
    table(counted.map(({ kind, length }) => [String(length), ...kind.split("\n")])),
    `${plural(rows.length, "dead letter")} of ${service} would be redriven${more ? "; there are more" : ""}.`,
    "Nothing was changed. Add --yes and --reason to redrive them.",
  ].join("\n");
}
