/** The one statement that ends what has run out. */
import { randomUUIDv7 } from "node:crypto";
import { type Db, statement } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { entitlementEventSql } from "./events.ts";

/** In the audit, where a holder of an API key stands otherwise; no holder's name has a colon. */
const caller = "todoke:expiry";

/**
 * State, event and audit in one commit. Rows that a command holds at this moment are left to it: a grant that renews wins,
 * and what is still due afterwards is found by the next run. Said twice, what is due holds of the row that is written.
 */
const text = `
with expired as (
  update entitlements set status = 'EXPIRED', version = version + 1, updated_at = now()
   where status = 'ACTIVE' and expires_at <= now() and ctid = any(array(
           select ctid from entitlements where status = 'ACTIVE' and expires_at <= now()
            order by expires_at limit $2 for update skip locked))
  returning user_id, stock_keeping_unit, version, source, source_id, updated_at, expires_at
),
results as materialized (select *, ($1::uuid[])[row_number() over ()] as event_id from expired),
insert_events as (
  ${insertEventsSql({
    ...entitlementEventSql,
    from: "results",
    eventType: "'EntitlementExpired'",
    fields: { ...entitlementEventSql.fields, expires_at: "expires_at" },
  })}
),
insert_audit as (
  insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  select user_id, stock_keeping_unit, version, 'EXPIRE', source, source_id, '${caller}', event_id from results
)
select count(*)::int as expired from results`;

/** Ends up to `limit` of what has run out by the database's clock, and returns how many that were. */
export async function expireEntitlements(db: Db, limit: number): Promise<number> {
  const eventIds = Array.from({ length: limit }, () => randomUUIDv7());
  const { rows } = await statement<{ expired: number }>(db, {
    name: "expire entitlements",
    text,
    values: [eventIds, limit],
  });
  return rows[0]?.expired ?? 0;
}
