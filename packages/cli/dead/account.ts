/** What a redrive has done, or would do, told to a person or as JSON. */
import { oneLine, plural, table } from "../output.ts";
import type { Seen } from "./every-page.ts";

export interface Named {
  readonly table: string;
  readonly id: string;
}

export interface Done {
  readonly redriven: readonly Named[];
  /** Named, but not dead: somebody was first. */
  readonly left: readonly Named[];
  readonly more: boolean;
}

// More ids than fit a screen help nobody; --json has them all.
const namedMax = 20;

export function accountOf({ redriven, left, more }: Done, json: boolean): string {
  if (json) return JSON.stringify({ redriven, left, more }, null, 2);
  const lines =
    redriven.length > 0 && redriven.length <= namedMax ? [table(redriven.map((row) => [row.table, row.id]))] : [];
  lines.push(`${plural(redriven.length, "row")} redriven.`);
  if (left.length > 0) lines.push(`Not dead any more, and left alone: ${left.map(({ id }) => id).join(", ")}.`);
  if (more) lines.push("There are more: run it again for the next ones.");
  return lines.join("\n");
}

/** What --yes would do: how many of each table, type and error. */
export function outlookOf({ rows, more }: Seen, { service, json }: { service: string; json: boolean }): string {
  if (json) return JSON.stringify({ would_redrive: rows.map(({ table, id }) => ({ table, id })), more }, null, 2);
  if (rows.length === 0) return "Nothing to redrive: no row is dead that the filters leave.";
  const kinds = Map.groupBy(rows, ({ table, event_type, last_error }) =>
    [table, oneLine(event_type), oneLine(last_error ?? "")].join("\n"),
  );
  const counted = [...kinds].map(([kind, { length }]) => ({ kind, length })).sort((a, b) => b.length - a.length);
  return [
    table(counted.map(({ kind, length }) => [String(length), ...kind.split("\n")])),
    `${plural(rows.length, "row")} of ${service} would be redriven${more ? ", and more after them" : ""}.`,
    "Nothing was done: add --yes and --reason to do it.",
  ].join("\n");
}
