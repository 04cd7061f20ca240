/** A user's balance, now and at a past time. Expired lots and holds never count, even if their expiry is not posted yet. */
import type { Db } from "@todoke/kernel/db";
import { timeSql } from "./time.ts";

export interface BalanceView {
  readonly user_id: string;
  /** Points that can be spent. */
  readonly balance: bigint;
  /** Points blocked by holds. */
  readonly held: bigint;
  readonly version: bigint;
  /** RFC 3339, UTC. */
  readonly as_of: string;
}

export interface ConfirmedBalance extends BalanceView {
  /** Reserved and not granted yet. */
  readonly pending: bigint;
}

/** Expirations up to the time `t` that are not posted: lots, and holds, which return points to lots that have not expired. */
const unposted = (user: string, t: string) => `
  cross join lateral (select coalesce(sum(l.remaining), 0) as points from point_lots l
                       where l.user_id = ${user} and l.is_open and l.expires_at <= ${t}) expired_lots
  cross join lateral (select coalesce(sum(h.amount), 0) as points from point_holds h
                       where h.user_id = ${user} and h.status = 'HELD' and h.ends_at <= ${t}) expired_holds
  cross join lateral (select coalesce(sum(u.amount - u.returned), 0) as points
                        from point_holds h
                       cross join lateral (select u.lot_id, u.amount, u.returned from point_lot_uses u
                                            where u.transaction_id = h.hold_id offset 0) u
                       cross join lateral (select l.expires_at from point_lots l where l.lot_id = u.lot_id limit 1) l
                       where h.user_id = ${user} and h.status = 'HELD' and h.ends_at <= ${t} and l.expires_at > ${t}) returned`;

export const balancesSql = `
select one.user_id, (coalesce(r.balance, 0) - expired_lots.points + returned.points)::bigint as balance,
       (coalesce(r.held, 0) - expired_holds.points)::bigint as held, pending::text as pending, coalesce(r.version, 0) as version,
       ${timeSql("statement_timestamp()")} as as_of
  from unnest($1::text[]) with ordinality as one(user_id, ordinal)
  left join lateral (select balance, held, version from point_root where user_id = one.user_id limit 1) r on true
  ${unposted("one.user_id", "statement_timestamp()")}
  cross join lateral (select coalesce(sum(p.point_amount), 0) as pending from point_reservations p
                       where p.user_id = one.user_id and p.status in ('PENDING', 'PROCESSING')) reserved
 order by one.ordinal`;

/** Results in input order. A user without an account has 0 points. */
export async function selectBalances(db: Db, userIds: readonly string[]): Promise<ConfirmedBalance[]> {
  const { rows } = await db.query({ name: "select balances", text: balancesSql, values: [userIds] });
  // Text, because the sum can exceed PostgreSQL's bigint.
  return rows.map((row) => ({ ...row, pending: BigInt(row.pending) }));
}

export const selectBalance = async (db: Db, userId: string): Promise<ConfirmedBalance> =>
  (await selectBalances(db, [userId]))[0] as ConfirmedBalance;

/**
 * The balance stored with the last transaction up to that time, plus expirations that were effective by then but posted
 * later (`late`).
 */
export const balanceAsOfSql = `
with asked as materialized (select least($2::timestamptz, statement_timestamp()) as t)
select $1 as user_id, (coalesce(last.balance_after, 0) + late.balance - expired_lots.points + returned.points)::bigint as balance,
       (coalesce(last.held_after, 0) + late.held - expired_holds.points)::bigint as held, coalesce(last.version, 0) as version,
       ${timeSql("a.t")} as as_of
  from asked a
  left join lateral (select balance_after, held_after, version from point_transactions
                      where user_id = $1 and created_at <= a.t order by created_at desc, version desc limit 1) last on true
  cross join lateral (select coalesce(sum(point_amount), 0) as balance,
                             coalesce(sum(case kind when 'RELEASE' then -moved else 0 end), 0) as held
                        from point_transactions
                       where user_id = $1 and effective_at <= a.t and created_at > a.t and effective_at < created_at) late
  ${unposted("$1", "a.t")}`;

/** A time in the future counts as now. */
export async function selectBalanceAsOf(db: Db, userId: string, at: string): Promise<BalanceView> {
  const { rows } = await db.query<BalanceView>({
    name: "select balance as of",
    text: balanceAsOfSql,
    values: [userId, at],
  });
  return rows[0] as BalanceView;
}
