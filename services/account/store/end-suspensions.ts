/** The one statement that ends the suspensions whose time is up. */
import { randomUUIDv7 } from "node:crypto";
import { type Db, statement, utcText } from "@todoke/kernel/db";

/** In the audit, where whoever acts stands otherwise. */
const actor = "todoke:expiry";
const reason = "the time of the suspension was up";

/**
 * State, event and audit in one commit. Users whom somebody holds at this moment are left to them: a suspension that is
 * prolonged wins, and what is still due afterwards is found by the next run.
 */
const text = `
with due as materialized (
  select user_id, suspended_until, suspended_reason from users
   where status = 'SUSPENDED' and suspended_until <= now()
   order by suspended_until limit $2 for update skip locked
),
reinstated as (
  update users set status = 'ACTIVE', suspended_reason = null, suspended_until = null,
                   version = version + 1, updated_at = now()
   where user_id = any(array(select user_id from due))
  returning user_id, version, updated_at
),
told as materialized (
  select r.*, d.suspended_until, d.suspended_reason, ($1::uuid[])[row_number() over ()] as event_id
    from reinstated r join due d on d.user_id = r.user_id
),
published as (
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
  select event_id, 'AccountReinstated', 'account.events', user_id, version,
         jsonb_build_object('event_id', event_id, 'event_type', 'AccountReinstated', 'occurred_at', ${utcText("updated_at")},
           'version', version::text, 'user_id', user_id, 'reason', '${reason}')
    from told
),
audited as (
  insert into audit_logs (user_id, version, actor, action, reason, before, after)
  select user_id, version, '${actor}', 'REINSTATE', '${reason}',
         jsonb_build_object('status', 'SUSPENDED', 'suspended_until', ${utcText("suspended_until")},
           'suspended_reason', suspended_reason), '{"status": "ACTIVE"}'
    from told
)
select count(*)::int as ended from told`;

/** Ends up to `limit` of what has run out by the database's clock, and returns how many that were. */
export async function endSuspensions(db: Db, limit: number): Promise<number> {
  const eventIds = Array.from({ length: limit }, () => randomUUIDv7());
  const { rows } = await statement<{ ended: number }>(db, { name: "end suspensions", text, values: [eventIds, limit] });
  return rows[0]?.ended ?? 0;
}
