/**
 * The kernel owns its tables: whatever runs in production and lies outside the kernel names neither a kernel table nor a
 * claim column. Fences, leases, keys and events are then written in one place, and a race in them is fixed in one place.
 *
 * Read are the texts of a file: its strings and templates, where SQL is; in a migration all but the comments. Fields of the
 * public API that are called as a column is (`next_retry_at`) are no texts, and none of this rule's business.
 *
 * What this rule cannot see: outbox_orders calls two claim columns `attempts` and `last_error_msg`, as its seed does, and
 * shows both to callers. Its own statement sets them when an order takes a step.
 */
import type { Text } from "./source.ts";

/** Bare names: nothing else is called so. */
const kernelTable = /\b(outbox_events|idempotency_keys|processed_events|inbox_attempts|inbox_dlq)\b/g;
/** An English word, too: a table only where SQL says so. */
const redrivesTable = /\b(?:from|into|update|join|table)\s+(redrives)\b/g;
const claimColumn = /\b(lease_epoch|lease_until|locked_by|locked_at|next_retry_at)\b/g;
/** Names that tables without claims have as well. They count where a claimed table, or its `dead_rows`, are named. */
const sharedColumn = /\b(attempt_count|last_error)\b/g;
const claimedTables = ["notifications", "outbox_orders", "cancel_requests"];
const ofClaimedTable = new RegExp(`\\b(?:from|into|update|join)\\s+(?:${claimedTables.join("|")}|dead_rows)\\b`);

interface Exception {
  readonly path: string;
  readonly names: readonly string[];
  readonly reason: string;
}

/** What cannot be removed yet. A line that nothing needs any more fails the test. */
export const exceptions: readonly Exception[] = [
  {
    path: "services/entitlement/migrations/0004_outbox_redrives_moved.sql",
    names: ["redrives", "outbox_events"],
    reason: "It moved rows into the kernel's table; a migration that has landed is never edited.",
  },
  {
    path: "services/notification/store/notifications.ts",
    names: ["attempt_count", "last_error"],
    reason:
      "notification_dlq, a table of the service, has columns of these names, which onDeadSql copies from the dead row.",
  },
];

export interface Named {
  readonly line: number;
  readonly name: string;
}

/** What of the kernel's a file names, exceptions left out; `test` code and what lies outside packages and services may. */
export function kernelNamesIn(path: string, texts: readonly Text[]): readonly Named[] {
  return allKernelNamesIn(path, texts).filter(({ name }) => !isException(path, name));
}

export function allKernelNamesIn(path: string, texts: readonly Text[]): readonly Named[] {
  if (!/^(packages|services)\//.test(path) || path.startsWith("packages/kernel/")) return [];
  return texts.flatMap(({ line, text }) => namesIn(path, text).map((name) => ({ line, name })));
}

function namesIn(path: string, text: string): readonly string[] {
  const tables = [...matches(text, kernelTable), ...matches(text, redrivesTable)];
  // Every claimed table has these columns; the migration of its owner makes them. The bus in PostgreSQL is such an owner.
  if (path.endsWith(".sql") || path.startsWith("packages/bus-postgres/")) return tables;
  const shared = ofClaimedTable.test(text) ? matches(text, sharedColumn) : [];
  return [...tables, ...matches(text, claimColumn), ...shared];
}

const matches = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map((found) => found[1] as string)),
];

const isException = (path: string, name: string) =>
  exceptions.some((each) => each.path === path && each.names.includes(name));

/** Tables that a file describes to the claim engine and that this rule does not know of. */
export function unknownClaimedTables(path: string, text: string): readonly string[] {
  if (path.startsWith("packages/kernel/") || path.startsWith("packages/bus-postgres/")) return [];
  return [...text.matchAll(/\btable: "(\w+)",\s+key: "/g)]
    .map((found) => found[1] as string)
    .filter((table) => !claimedTables.includes(table));
}
