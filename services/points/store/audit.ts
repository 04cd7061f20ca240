/**
 * What must hold between the tables of the ledger, asked of a live database: one statement sees one snapshot, so what is
 * being written meanwhile is seen whole or not at all. Each row is something that should not be.
 */
import type { Queryable } from "@todoke/kernel/db";

export interface AuditFinding {
  /** What does not hold. */
  readonly rule: string;
  /** The user, lot, hold or transaction. */
  readonly about: string;
  readonly detail: string;
}

// Whoever reads them mends the cause, not a million rows.
const findingsMax = 100;

/** Rules, each with the rows that break it: `about` and `detail`. */
const rules: Readonly<Record<string, string>> = {
  "the balance is the sum of the user's transactions, and so is what is held": `
    select user_id as about, format('root %s/%s, transactions %s/%s', r.balance, r.held, b.balance, b.held) as detail
      from point_root r full join booked b using (user_id)
     where (r.balance, r.held) is distinct from (coalesce(b.balance, 0), coalesce(b.held, 0))`,
  "versions count the user's transactions, without a gap": `
    select user_id as about, format('version %s, %s transactions up to %s', r.version, b.transactions, b.last) as detail
      from point_root r left join booked b using (user_id)
     where r.version <> coalesce(b.transactions, 0) or r.version <> coalesce(b.last, 0)`,
  "the user's lots add up to the balance": `
    select user_id as about, format('balance %s, lots %s', r.balance, coalesce(l.remaining, 0)) as detail
      from point_root r full join (select user_id, sum(remaining) as remaining from point_lots group by user_id) l using (user_id)
     where r.balance is distinct from coalesce(l.remaining, 0)`,
  "open holds add up to what is held": `
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
  "each transaction goes on from the one before": `
    select id::text as about, format('%s after %s', balance_after, balance_before) as detail
      from (select *, lag(balance_after, 1, 0::bigint) over w as balance_before, lag(held_after, 1, 0::bigint) over w as held_before,
                   lag(created_at) over w as time_before
              from point_transactions window w as (partition by user_id order by version)) t
     where balance_after <> balance_before + point_amount
        or held_after <> held_before + case kind when 'HOLD' then moved when 'RELEASE' then -moved when 'CAPTURE' then -moved else 0 end
        or created_at < time_before`,
  "what was taken from lots is what was spent or held": `
    select id::text as about, format('moved %s, taken %s', moved, coalesce(taken, 0)) as detail
      from (select id, moved from point_transactions where kind in ('SUB', 'HOLD')) t
      left join (select transaction_id, sum(amount) as taken from point_lot_uses group by transaction_id) u on u.transaction_id = t.id
     where moved is distinct from taken`,
  "what left a lot was taken from it or ran out": `
    select lot_id::text as about, format('left %s, taken %s, ran out %s', granted - remaining, taken, expired) as detail
      from (select l.lot_id, l.granted, l.remaining, coalesce(u.taken, 0) as taken, coalesce(e.expired, 0) as expired
              from point_lots l
              left join (select lot_id, sum(amount - returned) as taken from point_lot_uses group by lot_id) u using (lot_id)
              left join (select refers_to as lot_id, sum(moved) as expired from point_transactions where kind = 'EXPIRE'
                          group by refers_to) e using (lot_id)) s
     where granted - remaining <> taken + expired`,
  "what came back was released or refunded": `
    select transaction_id::text as about, format('returned %s, booked %s', returned, coalesce(booked, 0)) as detail
      from (select transaction_id, sum(returned) as returned from point_lot_uses group by transaction_id) u
      left join (select case when c.kind = 'CAPTURE' then c.refers_to else t.refers_to end as id, sum(t.moved) as booked
                   from point_transactions t left join point_transactions c on c.id = t.refers_to
                  where t.kind in ('RELEASE', 'REFUND') group by 1) b on b.id = u.transaction_id
     where returned <> coalesce(booked, 0)`,
};

const text = `
with booked as materialized (
  select user_id, sum(point_amount) as balance,
         sum(case kind when 'HOLD' then moved when 'RELEASE' then -moved when 'CAPTURE' then -moved else 0 end) as held,
         count(*) as transactions, max(version) as last
    from point_transactions group by user_id
)
select rule, about, detail from (
  ${Object.entries(rules)
    .map(([rule, broken]) => `select '${rule.replaceAll("'", "''")}' as rule, about, detail from (${broken}) b`)
    .join("\n  union all\n  ")}
) findings limit ${findingsMax}`;

/** Reads the whole ledger: give it a connection whose statements may take long. */
export async function auditLedger(db: Queryable): Promise<AuditFinding[]> {
  return (await db.query<AuditFinding>(text)).rows;
}
