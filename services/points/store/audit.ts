/** Rules between the tables of the ledger. */
import { type Audit, type AuditFinding, type AuditSpec, audit as auditSpecs } from "@todoke/kernel/audit";
import type { Queryable } from "@todoke/kernel/db";

/** Each rule with a query for the rows that break it. */
const rules: Readonly<Record<string, string>> = {
  "balance and held points are the sums of the user's transactions": `
    select user_id as about, format('root %s/%s, transactions %s/%s', r.balance, r.held, b.balance, b.held) as detail
      from point_root r full join posted b using (user_id)
     where (r.balance, r.held) is distinct from (coalesce(b.balance, 0), coalesce(b.held, 0))`,
  "versions count the user's transactions without gaps": `
    select user_id as about, format('version %s, %s transactions up to %s', r.version, b.transactions, b.last) as detail
      from point_root r left join posted b using (user_id)
     where r.version <> coalesce(b.transactions, 0) or r.version <> coalesce(b.last, 0)`,
  "the user's lots add up to the balance": `
    select user_id as about, format('balance %s, lots %s', r.balance, coalesce(l.remaining, 0)) as detail
      from point_root r full join (select user_id, sum(remaining) as remaining from point_lots group by user_id) l using (user_id)
     where r.balance is distinct from coalesce(l.remaining, 0)`,
  "open holds add up to the held points": `
    select user_id as about, format('held %s, holds %s', r.held, coalesce(h.amount, 0)) as detail
      from point_root r
      full join (select user_id, sum(amount) as amount from point_holds where status = 'HELD' group by user_id) h using (user_id)
     where r.held is distinct from coalesce(h.amount, 0)`,
  "all accounts add up to 0": `
    select 'all accounts' as about, format('they add up to %s', total) as detail
      from (select (select coalesce(sum(balance::numeric + held), 0) from point_root)
                   + coalesce(sum(case when to_account in ('spent', 'expired') then moved else 0 end
                                  - case when from_account in ('issuer', 'spent') then moved else 0 end), 0) as total
              from point_transactions) sums
     where total <> 0`,
  "each transaction continues from the previous one": `
    select id::text as about, format('%s after %s', balance_after, balance_before) as detail
      from (select *, lag(balance_after, 1, 0::bigint) over w as balance_before, lag(held_after, 1, 0::bigint) over w as held_before,
                   lag(created_at) over w as time_before
              from point_transactions window w as (partition by user_id order by version)) t
     where balance_after <> balance_before + point_amount
        or held_after <> held_before + case kind when 'HOLD' then moved when 'RELEASE' then -moved when 'CAPTURE' then -moved else 0 end
        or created_at < time_before`,
  "every addition has one lot of the same user and amount": `
    select coalesce(l.lot_id, t.id)::text as about,
           format('added %s to %s, lot of %s for %s', t.moved, t.user_id, l.granted, l.user_id) as detail
      from (select id, user_id, moved from point_transactions where kind in ('ADD', 'GRANT')) t
      full join point_lots l on l.lot_id = t.id
     where (t.user_id, t.moved) is distinct from (l.user_id, l.granted)`,
  "every hold matches its transactions": `
    select coalesce(h.hold_id, t.id)::text as about,
           format('hold of %s for %s, captured %s, released %s; posted %s for %s, captured %s, released %s', h.amount, h.user_id,
                  h.captured, h.released, t.moved, t.user_id, coalesce(e.captured, 0), coalesce(e.released, 0)) as detail
      from (select id, user_id, moved from point_transactions where kind = 'HOLD') t
      full join point_holds h on h.hold_id = t.id
      left join (select refers_to as hold_id, sum(moved) filter (where kind = 'CAPTURE') as captured,
                        sum(moved) filter (where kind = 'RELEASE') as released
                   from point_transactions where kind in ('CAPTURE', 'RELEASE') group by refers_to) e on e.hold_id = h.hold_id
     where (t.user_id, t.moved, coalesce(e.captured, 0), coalesce(e.released, 0))
           is distinct from (h.user_id, h.amount, h.captured::numeric, h.released::numeric)`,
  "lot uses add up to what was spent or held": `
    select id::text as about, format('moved %s, taken %s', moved, coalesce(taken, 0)) as detail
      from (select id, moved from point_transactions where kind in ('SUB', 'HOLD')) t
      left join (select transaction_id, sum(amount) as taken from point_lot_uses group by transaction_id) u on u.transaction_id = t.id
     where moved is distinct from taken`,
  "points missing from a lot were used or expired": `
    select lot_id::text as about, format('missing %s, used %s, expired %s', granted - remaining, taken, expired) as detail
      from (select l.lot_id, l.granted, l.remaining, coalesce(u.taken, 0) as taken, coalesce(e.expired, 0) as expired
              from point_lots l
              left join (select lot_id, sum(amount - returned) as taken from point_lot_uses group by lot_id) u using (lot_id)
              left join (select refers_to as lot_id, sum(moved) as expired from point_transactions where kind = 'EXPIRE'
                          group by refers_to) e using (lot_id)) s
     where granted - remaining <> taken + expired`,
  "returned points match releases and refunds": `
    select transaction_id::text as about, format('returned %s, posted %s', returned, coalesce(posted, 0)) as detail
      from (select transaction_id, sum(returned) as returned from point_lot_uses group by transaction_id) u
      left join (select case when c.kind = 'CAPTURE' then c.refers_to else t.refers_to end as id, sum(t.moved) as posted
                   from point_transactions t left join point_transactions c on c.id = t.refers_to
                  where t.kind in ('RELEASE', 'REFUND') group by 1) b on b.id = u.transaction_id
     where returned <> coalesce(posted, 0)`,
  // The ledger's times have milliseconds, those of reservations have microseconds.
  "every DONE reservation was granted in full to its user, and not early": `
    select r.id::text as about,
           format('%s points for %s at %s, granted %s to %s at %s', r.point_amount, r.user_id, r.execute_at,
                  coalesce(t.moved::text, 'nothing'), t.user_id, t.created_at) as detail
      from point_reservations r left join point_transactions t on t.idempotency_key = 'reservation:' || r.id
     where r.status = 'DONE'
       and (t.id is distinct from r.transaction_id or t.kind <> 'GRANT' or t.user_id <> r.user_id
            or t.point_amount <> r.point_amount or t.created_at < date_trunc('milliseconds', r.execute_at))`,
  "every grant of a reservation belongs to a DONE reservation": `
    select t.id::text as about, format('%s: %s', t.idempotency_key, coalesce(r.status, 'no such reservation')) as detail
      from point_transactions t left join point_reservations r on t.idempotency_key = 'reservation:' || r.id
     where t.idempotency_key like 'reservation:%' and r.status is distinct from 'DONE'`,
};

export const pointsAudit: AuditSpec = {
  checked: {
    users: "point_root",
    transactions: "point_transactions",
    lots: "point_lots",
    holds: "point_holds",
    reservations: "point_reservations",
  },
  shared: [
    `posted as materialized (
  select user_id, sum(point_amount) as balance,
         sum(case kind when 'HOLD' then moved when 'RELEASE' then -moved when 'CAPTURE' then -moved else 0 end) as held,
         count(*) as transactions, max(version) as last
    from point_transactions group by user_id
)`,
  ],
  rules,
};

/** The rules of the ledger alone, for the small ledgers of tests. */
export const audit = (db: Queryable): Promise<Audit> => auditSpecs(db, [pointsAudit], { keptMs: 0 });

export const auditLedger = async (db: Queryable): Promise<readonly AuditFinding[]> => (await audit(db)).findings;
