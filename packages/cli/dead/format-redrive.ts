/** Output of `todoke dead redrive` and `discard`: the rows that they have changed, or would change. */
import { oneLine, plural, table } from "../output.ts";
import type { FoundDeadLetters } from "./each-page.ts";

export interface DeadLetterId {
  readonly table: string;
  readonly id: string;
}

export type Action = "redrive" | "discard";

const done = { redrive: "redriven", discard: "discarded" } as const;

export interface ChangeResult {
  readonly changed: readonly DeadLetterId[];
  /** Named on the command line, but no longer dead. */
  readonly left: readonly DeadLetterId[];
  readonly more: boolean;
}

/** More ids do not fit a screen. --json prints all. */
const idsShownMax = 20;

export function formatResult(
  { changed, left, more }: ChangeResult,
  { action, json }: { readonly action: Action; readonly json: boolean },
): string {
  if (json) return JSON.stringify({ [done[action]]: changed, left, more }, null, 2);
  const lines =
    changed.length > 0 && changed.length <= idsShownMax ? [table(changed.map((row) => [row.table, row.id]))] : [];
  lines.push(`${plural(changed.length, "dead letter")} ${done[action]}.`);
  if (left.length > 0) lines.push(`No longer dead, and skipped: ${left.map(({ id }) => id).join(", ")}.`);
  if (more) lines.push(`There are more. Run the command again to ${action} them.`);
  return lines.join("\n");
}

/** The rows that --yes would change, counted by table, type and error. */
export function formatPreview(
  { rows, more }: FoundDeadLetters,
  { service, action, json }: { service: string; action: Action; json: boolean },
): string {
  if (json) return JSON.stringify({ [`would_${action}`]: rows.map(({ table, id }) => ({ table, id })), more }, null, 2);
  if (rows.length === 0) return "No dead letter matches the filters.";
  const kinds = Map.groupBy(rows, ({ table, event_type, last_error }) =>
    [table, oneLine(event_type), oneLine(last_error ?? "")].join("\n"),
  );
  const counted = [...kinds].map(([kind, { length }]) => ({ kind, length })).sort((a, b) => b.length - a.length);
  return [
    table(counted.map(({ kind, length }) => [String(length), ...kind.split("\n")])),
    `${plural(rows.length, "dead letter")} of ${service} would be ${done[action]}${more ? "; there are more" : ""}.`,
    `Nothing was changed. Add --yes and --reason to ${action} them.`,
  ].join("\n");
}
