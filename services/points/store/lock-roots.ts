/** The users whom changes are about, locked in the order of their names: whoever comes in that order cannot deadlock. */
import type { Tx } from "@todoke/kernel/db";
import type { Root, Time } from "../ledger/account.ts";
import type { Change } from "../ledger/changes.ts";
import { timeText } from "./time.ts";

/**
 * Users are made when they are first granted something. This goes before any lock on a user, in the order of names too: so
 * whoever waits here holds nothing that somebody with a lock waits for.
 */
export const concernedText = `
with made as (
  insert into point_root (user_id)
  select i.user_id from unnest($1::text[]) with ordinality as i(user_id, place)
    left join lateral (select true as there from point_root r where r.user_id = i.user_id limit 1) r on true
   where r.there is null order by i.place
  on conflict (user_id) do nothing
)
select h.user_id from unnest($2::uuid[]) as i(hold_id)
 cross join lateral (select h.user_id from point_holds h where h.hold_id = i.hold_id limit 1) h
union
select t.user_id from unnest($3::uuid[]) as i(id)
 cross join lateral (select t.user_id from point_transactions t where t.id = i.id limit 1) t`;

/** Everybody concerned, in order; those who are granted something have a row by then. */
export async function usersConcerned(tx: Tx, changes: readonly Change[]): Promise<string[]> {
  const named = inOrder(changes.flatMap((change) => ("userId" in change ? [change.userId] : [])));
  const granted = inOrder(
    changes.flatMap((change) => (change.kind === "ADD" || change.kind === "GRANT" ? [change.userId] : [])),
  );
  const holds = holdsNamed(changes);
  const transactions = transactionsNamed(changes);
  if (granted.length + holds.length + transactions.length === 0) return named;
  const { rows } = await tx.query<{ user_id: string }>({
    name: "find users concerned",
    text: concernedText,
    values: [granted, holds, transactions],
  });
  return inOrder([...named, ...rows.map((row) => row.user_id)]);
}

export const holdsNamed = (changes: readonly Change[]): string[] =>
  changes.flatMap((change) => ("holdId" in change ? [change.holdId] : []));

export const transactionsNamed = (changes: readonly Change[]): string[] =>
  changes.flatMap((change) => (change.kind === "REFUND" ? [change.transactionId] : []));

const inOrder = (names: readonly string[]): string[] => [...new Set(names)].sort();

/** A user's row while it is locked, and the time from then on: by the database's clock, should that step back never before
 * the last change, nor before the time that a grant was promised for. */
export interface LockedRoot extends Omit<Root, "updatedAt"> {
  readonly at: Time;
}

export const lockText = `
select r.user_id as "userId", r.balance, r.held, r.version,
       ${timeText("greatest(date_trunc('milliseconds', clock_timestamp()), r.updated_at, i.not_before)")} as at
  from unnest($1::text[], $2::timestamptz[]) as i(user_id, not_before)
 cross join lateral (select r.user_id, r.balance, r.held, r.version, r.updated_at from point_root r
                      where r.user_id = i.user_id limit 1 for update) r`;

/** Those who have a row, in the order given; with the time that the changes can be booked at. */
export async function lockRoots(
  tx: Tx,
  userIds: readonly string[],
  changes: readonly Change[] = [],
): Promise<LockedRoot[]> {
  const earliest = notBeforeByUser(changes);
  const { rows } = await tx.query<LockedRoot>({
    name: "lock point roots",
    text: lockText,
    values: [userIds, userIds.map((userId) => earliest.get(userId) ?? null)],
  });
  return rows;
}

/** The latest of each user's. */
function notBeforeByUser(changes: readonly Change[]): ReadonlyMap<string, Time> {
  const earliest = new Map<string, Time>();
  for (const change of changes) {
    if (!("notBefore" in change) || change.notBefore === undefined) continue;
    const before = earliest.get(change.userId);
    if (before === undefined || before < change.notBefore) earliest.set(change.userId, change.notBefore);
  }
  return earliest;
}
