/**
 * Finds what the database of a service knows about an id, as entries of a timeline for operators. Every look-up reads an index,
 * within a short timeout, so that it works on tables of any size while the service is busy.
 */
import type { Queryable } from "../db/index.ts";

export { aggregateAt, claimEntrySql, type EntriesSql, entriesSql } from "./entries-sql.ts";
export { type KernelTables, kernelLookups } from "./lookups.ts";

/** The kinds of ids. */
export const linkKinds = [
  "aggregate",
  "dead-event",
  "email",
  "entitlement",
  "event",
  "hold",
  "key",
  "match",
  "notification",
  "order",
  "request",
  "reservation",
  "session",
  "ticket",
  "trace",
  "transaction",
  "user",
] as const;
export type LinkKind = (typeof linkKinds)[number];

/** An id that an entry names. */
export interface Link {
  readonly kind: LinkKind;
  readonly id: string;
}

export interface DeadLetterName {
  readonly table: string;
  readonly id: string;
}

/** The row that another one waits behind. */
export interface Blocker {
  readonly kind: string;
  readonly id: string;
  readonly state: string;
  /** RFC 3339, UTC. */
  readonly since: string | null;
  readonly error: string | null;
  readonly dead_letter: DeadLetterName | null;
}

/** One thing that happened or is the case. Times are RFC 3339, UTC. */
export interface Entry {
  readonly kind: string;
  /** The id of the row in its own table. */
  readonly id: string;
  readonly at: string | null;
  /** As in the table; of a request, the status of its response. */
  readonly state: string | null;
  readonly attempt: number | null;
  /** The worker that has the row, or the person or program that did it. */
  readonly process: string | null;
  readonly trace_id: string | null;
  /** A short text. Parts of it come from callers. */
  readonly detail: string | null;
  readonly error: string | null;
  /** Set only while a retry is pending. */
  readonly next_retry_at: string | null;
  readonly blocked_by: Blocker | null;
  /** Set while it is dead: what to redrive or discard. */
  readonly dead_letter: DeadLetterName | null;
  readonly links: Link[];
}

/** The form that an id must have for a look-up. */
export type IdShape = keyof typeof shapes;

const shapes = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  /** The id of a trace. */
  hex32: /^[0-9a-f]{32}$/i,
  number: /^[1-9]\d{0,17}$/,
  email: /^[^@]+@[^@]+$/,
  /** An aggregate key and a time in milliseconds. */
  aggregate: /^.+@\d{12,14}$/,
  /** A user, a product and a version. */
  entitlement: /^[^/]+\/.+@\d{1,18}$/,
  /** A key or a name that a caller chose. */
  text: /^[^\p{C}]{1,320}$/u,
} as const;

export const hasShape = (shape: IdShape, id: string): boolean => shapes[shape].test(id);

/** Finds entries by one kind of id. */
export interface Lookup {
  readonly by: LinkKind;
  readonly shape: IdShape;
  /** A SELECT of entries (`entriesSql`); several are joined by UNION ALL. $1 is the id. Each part has a bound. */
  readonly sql: string;
}

export interface WhyQuestion extends Partial<Pick<Link, "kind">> {
  readonly id: string;
}

export interface FoundEntries {
  readonly entries: readonly Entry[];
  /** The look-ups that failed, each with its reason. */
  readonly failed: readonly string[];
}

/** Runs the look-ups that fit the id. Without a kind, the id can be anything. */
export async function findEntries(
  db: Queryable,
  lookups: readonly Lookup[],
  { id, kind }: WhyQuestion,
): Promise<FoundEntries> {
  const entries: Entry[] = [];
  const failed: string[] = [];
  // One after the other: it is a diagnosis, and must not load the database.
  for (const lookup of lookups) {
    if ((kind !== undefined && kind !== lookup.by) || !hasShape(lookup.shape, id)) continue;
    try {
      const { rows } = await db.query<EntryRow>(lookup.sql, [lookup.shape === "uuid" ? id.toLowerCase() : id]);
      entries.push(...rows.map(toEntry));
    } catch (error) {
      failed.push(`looking up the ${lookup.by} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { entries, failed };
}

interface EntryRow extends Omit<Entry, "links"> {
  readonly links: readonly { readonly kind: LinkKind; readonly id: string | readonly string[] | null }[];
}

/** A row may name no id of a kind, or several. */
function toEntry({ links, ...entry }: EntryRow): Entry {
  const all = links.flatMap(({ kind, id }) => [id ?? []].flat().map((each) => ({ kind, id: String(each) })));
  const distinct = new Map(all.map((link) => [`${link.kind} ${link.id}`, link]));
  return { ...entry, links: [...distinct.values()] };
}
