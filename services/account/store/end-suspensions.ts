/** What ends the suspensions whose time is up. */
import { randomUUIDv7 } from "node:crypto";
import { type Db, transaction, utcText } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { accountEventSql } from "./events.ts";

/** In the audit, where whoever acts stands otherwise. */
const actor = "todoke:expiry";
const reason = "the time of the suspension was up";

/**
 * State, event and audit in one commit. Users whom somebody holds at this moment are left to them: a suspension that is
 * prolonged wins, and what is still due afterwards is found by the next run.
 */
const rolesOf = `(select string_agg(a.role, ',' order by a.role) from account_roles a where a.user_id = results.user_id)`;

const text = `
with due as materialized (select user_id, suspended_until, suspended_reason from users where user_id = any($2::text[])),
reinstated as (
  update users set status = 'ACTIVE', suspended_reason = null, suspended_until = null,
                   version = version + 1, updated_at = now()
   where user_id = any(array(select user_id from due))
  returning user_id, version, updated_at
),
results as materialized (
  select r.*, d.suspended_until, d.suspended_reason, ($1::uuid[])[row_number() over ()] as event_id
    from reinstated r join due d on d.user_id = r.user_id
),
insert_events as (
  ${insertEventsSql({
    ...accountEventSql,
    from: "results",
    eventId: "event_id",
    eventType: "'AccountReinstated'",
    occurredAt: utcText("updated_at"),
    fields: { user_id: "user_id", status: "'ACTIVE'", roles: rolesOf, reason: `'${reason}'` },
  })}
),
insert_audit as (
  insert into audit_logs (user_id, version, actor, action, reason, before, after)
  select user_id, version, '${actor}', 'REINSTATE', '${reason}',
         jsonb_build_object('status', 'SUSPENDED', 'suspended_until', ${utcText("suspended_until")},
           'suspended_reason', suspended_reason), '{"status": "ACTIVE"}'
    from results
)
select from results`;

const lockText = `
select user_id from users where status = 'SUSPENDED' and suspended_until <= now()
 order by suspended_until limit $1 for update skip locked`;

/** Ends up to `limit` of what has run out by the database's clock, and returns how many that were. */
export function endSuspensions(db: Db, limit: number): Promise<number> {
  return transaction(db, async (tx) => {
    // A statement of its own: what the next one sees of the roles is from after the locks, and cannot change any more.
    const { rows } = await tx.query<{ user_id: string }>({ name: "lock ended", text: lockText, values: [limit] });
    if (rows.length === 0) return 0;
    const values = [rows.map(() => randomUUIDv7()), rows.map((row) => row.user_id)];
    await tx.query({ name: "end suspensions", text, values });
    return rows.length;
  });
}
