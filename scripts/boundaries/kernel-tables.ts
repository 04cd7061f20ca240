/**
 * The kernel owns its tables: production code outside the kernel names neither a kernel table nor a claim column. Fences,
 * leases, keys and events are then written in one place, and a race in them is fixed in one place.
 *
 * The rule reads strings and templates, where SQL is, and migrations without their comments. It ignores API fields that are
 * named like a column (`next_retry_at`).
 *
 * It does not know that outbox_orders has claim columns with other names, `attempts` and `last_error_msg`, as in its seed,
 * which the service's own statement sets.
 */
import type { Text } from "./source.ts";

/** Unique names. */
const kernelTable = /\b(outbox_events|idempotency_keys|processed_events|inbox_attempts|inbox_dlq)\b/g;
/** Also an English word, so it counts only after an SQL keyword. */
const redrivesTable = /\b(?:from|into|update|join|table)\s+(redrives)\b/g;
const claimColumn = /\b(lease_epoch|lease_until|locked_by|locked_at|next_retry_at)\b/g;
/** Other tables have these columns too. They count in a text that names a claimed table or its `dead_rows`. */
const sharedColumn = /\b(attempt_count|last_error)\b/g;
const claimedTables = ["notifications", "outbox_orders", "cancel_requests", "followed_orders"];
const ofClaimedTable = new RegExp(`\\b(?:from|into|update|join)\\s+(?:${claimedTables.join("|")}|dead_rows)\\b`);

interface Exception {
  readonly path: string;
  readonly names: readonly string[];
  readonly reason: string;
}

/** Exceptions that cannot be removed yet. An exception that is no longer needed fails a test. */
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

/** Kernel names in a file, without exceptions. Files outside packages and services may name them. */
export function findKernelNames(path: string, texts: readonly Text[]): readonly Named[] {
  return findAllKernelNames(path, texts).filter(({ name }) => !isException(path, name));
}

export function findAllKernelNames(path: string, texts: readonly Text[]): readonly Named[] {
  if (!/^(packages|services)\//.test(path) || path.startsWith("packages/kernel/")) return [];
  return texts.flatMap(({ line, text }) => namesIn(path, text).map((name) => ({ line, name })));
}

function namesIn(path: string, text: string): readonly string[] {
  const tables = [...matches(text, kernelTable), ...matches(text, redrivesTable)];
  // The owner of a claimed table creates these columns in its migration. The PostgreSQL bus is such an owner.
  if (path.endsWith(".sql") || path.startsWith("packages/bus-postgres/")) return tables;
  const shared = ofClaimedTable.test(text) ? matches(text, sharedColumn) : [];
  return [...tables, ...matches(text, claimColumn), ...shared];
}

const matches = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map((found) => found[1] as string)),
];

const isException = (path: string, name: string) =>
  exceptions.some((each) => each.path === path && each.names.includes(name));

/** Claimed tables of a file that this rule does not know. */
export function unknownClaimedTables(path: string, text: string): readonly string[] {
  if (path.startsWith("packages/kernel/") || path.startsWith("packages/bus-postgres/")) return [];
  return [...text.matchAll(/\btable: "(\w+)",\s+key: "/g)]
    .map((found) => found[1] as string)
    .filter((table) => !claimedTables.includes(table));
}
