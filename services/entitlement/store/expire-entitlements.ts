/** Expires entitlements: state, event and audit row in one statement and one commit. */
import { randomUUIDv7 } from "node:crypto";
import { type Db, statement } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { entitlementExpired } from "../events/entitlement-events.ts";

/** The `caller` in the audit. API-key holders have no colon in their names. */
const caller = "todoke:expiry";

/**
 * Rows that a command has locked are skipped: a renewing grant wins, and a row that is still due is found by the next run.
 * The outer condition repeats the inner one because the row may have changed since the subquery read it.
 */
const expireSql = `
with expired as (
  update entitlements set status = 'EXPIRED', version = version + 1, updated_at = now()
   where status = 'ACTIVE' and expires_at <= now() and ctid = any(array(
           select ctid from entitlements where status = 'ACTIVE' and expires_at <= now()
            order by expires_at limit $2 for update skip locked))
  returning user_id, stock_keeping_unit, version, source, source_id, updated_at, expires_at
),
results as materialized (select *, ($1::uuid[])[row_number() over ()] as event_id from expired),
insert_events as (
  ${insertEventsSql({ ...entitlementExpired, from: "results" })}
),
insert_audit as (
  insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  select user_id, stock_keeping_unit, version, 'EXPIRE', source, source_id, '${caller}', event_id from results
)
select count(*)::int as expired from results`;

/** Expires up to `limit` entitlements that are due by the database's clock, and returns how many. */
export async function expireEntitlements(db: Db, limit: number): Promise<number> {
  const eventIds = Array.from({ length: limit }, () => randomUUIDv7());
  const { rows } = await statement<{ expired: number }>(db, {
    name: "expire entitlements",
    text: expireSql,
    values: [eventIds, limit],
  });
  return rows[0]?.expired ?? 0;
}
