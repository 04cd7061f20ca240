/**
 * What a user has, now and as of a time. What has run out is never shown, whether or not it is booked yet; nor is a hold whose
 * time is up. Amounts are bigint.
 */
import type { Db } from "@todoke/kernel/db";
import { timeText } from "./time.ts";

export interface BalanceView {
  readonly user_id: string;
  /** Can be spent. */
  readonly balance: bigint;
  /** Set aside by holds. */
  readonly held: bigint;
  readonly version: bigint;
  /** RFC 3339, UTC: when this was so. */
  readonly as_of: string;
}

export interface ConfirmedBalance extends BalanceView {
  /** Reserved for later, and not granted yet. */
  readonly pending: bigint;
}

/**
 * What changes by itself up to the time `t` and is not booked: lots run out, and holds that have ended give back what they
 * took, save to lots that have run out too.
 */
const unbooked = (t: string) => `
  cross join lateral (select coalesce(sum(l.remaining), 0) as gone from point_lots l
                       where l.user_id = $1 and l.is_open and l.expires_at <= ${t}) lots
  cross join lateral (select coalesce(sum(h.amount), 0) as ended from point_holds h
                       where h.user_id = $1 and h.status = 'HELD' and h.ends_at <= ${t}) holds
  cross join lateral (select coalesce(sum(u.amount - u.returned), 0) as back
                        from point_holds h
                       cross join lateral (select u.lot_id, u.amount, u.returned from point_lot_uses u
                                            where u.transaction_id = h.hold_id offset 0) u
                       cross join lateral (select l.expires_at from point_lots l where l.lot_id = u.lot_id limit 1) l
                       where h.user_id = $1 and h.status = 'HELD' and h.ends_at <= ${t} and l.expires_at > ${t}) returned`;

export const nowText = `
select $1 as user_id, (coalesce(r.balance, 0) - gone + back)::bigint as balance,
       (coalesce(r.held, 0) - ended)::bigint as held, pending::text as pending, coalesce(r.version, 0) as version,
       ${timeText("statement_timestamp()")} as as_of
  from (select 1) one
  left join lateral (select balance, held, version from point_root where user_id = $1 limit 1) r on true
  ${unbooked("statement_timestamp()")}
  cross join lateral (select coalesce(sum(p.point_amount), 0) as pending from point_reservations p
                       where p.user_id = $1 and p.status in ('PENDING', 'PROCESSING')) reserved`;

/** Whoever has never had points has none. */
export async function selectBalance(db: Db, userId: string): Promise<ConfirmedBalance> {
  const { rows } = await db.query({ name: "select balance", text: nowText, values: [userId] });
  // Text: what is reserved may add up to more than a bigint of PostgreSQL has room for.
  return { ...rows[0], pending: BigInt(rows[0].pending) };
}

/**
 * The last transaction up to then, and what counted by then though it was booked later. The balance after a transaction is
 * kept with it, so nothing is added up from the beginning.
 */
export const asOfText = `
with asked as materialized (select least($2::timestamptz, statement_timestamp()) as t)
select $1 as user_id, (coalesce(last.balance_after, 0) + late.balance - gone + back)::bigint as balance,
       (coalesce(last.held_after, 0) + late.held - ended)::bigint as held, coalesce(last.version, 0) as version,
       ${timeText("a.t")} as as_of
  from asked a
  left join lateral (select balance_after, held_after, version from point_transactions
                      where user_id = $1 and created_at <= a.t order by created_at desc, version desc limit 1) last on true
  cross join lateral (select coalesce(sum(point_amount), 0) as balance,
                             coalesce(sum(case kind when 'RELEASE' then -moved else 0 end), 0) as held
                        from point_transactions
                       where user_id = $1 and effective_at <= a.t and created_at > a.t and effective_at < created_at) late
  ${unbooked("a.t")}`;

/** A time to come is answered as now. */
export async function selectBalanceAsOf(db: Db, userId: string, at: string): Promise<BalanceView> {
  const { rows } = await db.query<BalanceView>({ name: "select balance as of", text: asOfText, values: [userId, at] });
  return rows[0] as BalanceView;
}
