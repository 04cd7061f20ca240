/** Locks the users that changes affect. Every batch locks in the same order, by user id, so batches cannot deadlock. */
import type { Tx } from "@todoke/kernel/db";
import type { Root, Time } from "../ledger/account.ts";
import { type Change, isGrant } from "../ledger/changes.ts";
import { timeSql } from "./time.ts";

/**
 * Inserts users at their first grant, also in the order of user ids. It runs before any lock on a user, so a batch that
 * waits here holds nothing that others wait for.
 */
export const affectedUsersSql = `
with insert_roots as (
  insert into point_root (user_id)
  select i.user_id from unnest($1::text[]) with ordinality as i(user_id, ordinal)
    left join lateral (select true as found from point_root r where r.user_id = i.user_id limit 1) r on true
   where r.found is null order by i.ordinal
  on conflict (user_id) do nothing
)
select h.user_id from unnest($2::uuid[]) as i(hold_id)
 cross join lateral (select h.user_id from point_holds h where h.hold_id = i.hold_id limit 1) h
union
select t.user_id from unnest($3::uuid[]) as i(id)
 cross join lateral (select t.user_id from point_transactions t where t.id = i.id limit 1) t`;

/** The users that the changes affect. Users with a grant have a row afterwards. */
export async function selectAffectedUsers(tx: Tx, changes: readonly Change[]): Promise<string[]> {
  const userIds = changes.flatMap((change) => ("userId" in change ? [change.userId] : []));
  const granted = changes.filter(isGrant).map(({ userId }) => userId);
  const [holds, refunded] = [holdIds(changes), refundedIds(changes)];
  if (granted.length + holds.length + refunded.length === 0) return userIds;
  const { rows } = await tx.query<{ user_id: string }>({
    name: "select affected users",
    text: affectedUsersSql,
    values: [sortedUnique(granted), holds, refunded],
  });
  return [...userIds, ...rows.map((row) => row.user_id)];
}

export const holdIds = (changes: readonly Change[]): string[] =>
  changes.flatMap((change) => ("holdId" in change ? [change.holdId] : []));

export const refundedIds = (changes: readonly Change[]): string[] =>
  changes.flatMap((change) => (change.kind === "REFUND" ? [change.transactionId] : []));

const sortedUnique = (userIds: readonly string[]): string[] => [...new Set(userIds)].sort();

/** A locked user. */
export interface LockedRoot extends Omit<Root, "updatedAt"> {
  /** The posting time: the database's clock, but not before the last change, nor before the time of a reservation. */
  readonly at: Time;
}

export const lockRootsSql = `
select r.user_id as "userId", r.balance, r.held, r.version,
       ${timeSql("greatest(date_trunc('milliseconds', clock_timestamp()), r.updated_at, i.not_before)")} as at
  from unnest($1::text[], $2::timestamptz[]) as i(user_id, not_before)
 cross join lateral (select r.user_id, r.balance, r.held, r.version, r.updated_at from point_root r
                      where r.user_id = i.user_id limit 1 for update) r`;

/** Locks in the order of user ids, whatever the order of `userIds`. Users without a row are missing in the result. */
export async function lockRoots(
  tx: Tx,
  userIds: readonly string[],
  changes: readonly Change[] = [],
): Promise<LockedRoot[]> {
  const sorted = sortedUnique(userIds);
  const notBefore = notBeforeByUser(changes);
  const { rows } = await tx.query<LockedRoot>({
    name: "lock point roots",
    text: lockRootsSql,
    values: [sorted, sorted.map((userId) => notBefore.get(userId) ?? null)],
  });
  return rows;
}

/** The latest of each user. */
function notBeforeByUser(changes: readonly Change[]): ReadonlyMap<string, Time> {
  const latest = new Map<string, Time>();
  for (const change of changes) {
    if (!("notBefore" in change) || change.notBefore === undefined) continue;
    const before = latest.get(change.userId);
    if (before === undefined || before < change.notBefore) latest.set(change.userId, change.notBefore);
  }
  return latest;
}
