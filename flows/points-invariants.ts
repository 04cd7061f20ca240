/** Invariants of reservations, checked on the tables of points and notification. */
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { expectedStatus, type Reservation } from "./reservation-load.ts";

interface Row {
  readonly id: string;
  readonly user: string;
  readonly amount: number;
  readonly status: string;
  /** Number of grants. */
  readonly grants: number;
  /** Dispatched or granted before its due time. */
  readonly early: boolean;
  /** Number of notifications about it. */
  readonly notifications: number;
  /** Created by a schedule, not by a request. */
  readonly recurring: boolean;
}

/** The ledger keeps milliseconds, a reservation microseconds. */
const recordSql = `
with notified as materialized (
  select coalesce(e.payload ->> 'reservation_id', e.payload ->> 'source_id') as reservation_id,
         count(n.notification_id)::int as notifications
    from outbox_events e left join notification.notifications n on n.event_id = e.event_id and n.status = 'SENT'
   where e.subject = 'points.events' group by 1
),
granted as materialized (
  select source_id, user_id, point_amount, count(*)::int as grants, min(created_at) as granted_at
    from point_transactions where kind = 'GRANT' group by 1, 2, 3
)
select r.id, r.user_id as "user", r.point_amount::int as amount, r.status,
       coalesce(g.grants, 0) as grants, coalesce(n.notifications, 0) as notifications,
       r.schedule_id is not null as recurring,
       coalesce(r.sent_at < r.execute_at, false)
         or coalesce(g.granted_at < date_trunc('milliseconds', r.execute_at), false) as early
  from point_reservations r
  left join granted g on g.source_id = r.id::text and g.user_id = r.user_id and g.point_amount = r.point_amount
  left join notified n on n.reservation_id = r.id::text`;

/** Polled, so each is an index probe, except the last, which is a count. */
const unfinishedSql: Readonly<Record<string, string>> = {
  "every reservation has ended": `select from point_reservations where status in ('PENDING', 'PROCESSING') limit 1`,
  "every event is published": `select from outbox_events where status in ('PENDING', 'IN_FLIGHT') limit 1`,
  "every user is notified": `
    select where (select count(*) from outbox_events where subject = 'points.events')
               > (select count(*) from notification.notifications where status = 'SENT')`,
};

/** Resolves when no reservation, event or notification is unfinished. */
export async function waitUntilAllDone(db: Db): Promise<void> {
  for (const [description, sql] of Object.entries(unfinishedSql))
    await until(description, async () => (await db.query(sql)).rowCount === 0, { withinMs: 120_000 });
}

/** Every accepted reservation happened once, and nothing else did. */
export async function recordViolations(db: Db, accepted: readonly Reservation[]): Promise<string[]> {
  const { rows } = await db.query<Row>(recordSql);
  const known = new Map(rows.map((row) => [row.id, row]));
  const lost = accepted
    .filter(({ id }) => !known.has(id))
    .map(({ id }) => `reservation ${id} was accepted and is lost`);
  const answered = new Set(accepted.map(({ id }) => id));
  const doubled = rows
    .filter(({ id, recurring }) => !recurring && !answered.has(id))
    .map(({ id }) => `reservation ${id} exists, but was never accepted`);
  const orphans = await db.query<{ id: string }>(
    `select id from point_transactions where kind = 'GRANT' and source_id not in (select id::text from point_reservations)`,
  );
  return [
    ...lost,
    ...doubled,
    ...rows.flatMap(rowViolations),
    ...orphans.rows.map(({ id }) => `transaction ${id} grants without a reservation`),
    ...(await auditLedger(db)).map(({ rule, about, detail }) => `violated: ${rule} (${about}: ${detail})`),
  ];
}

function rowViolations({ id, user, status, grants, early, notifications }: Row): string[] {
  const times = expectedStatus(user) === "DONE" ? 1 : 0;
  return [
    ...(status === expectedStatus(user) ? [] : [`reservation ${id} of ${user} is ${status}`]),
    ...(grants === times ? [] : [`reservation ${id} of ${user} was granted ${grants} times`]),
    ...(notifications === 1 ? [] : [`${user} was notified ${notifications} times of reservation ${id}`]),
    ...(early ? [`reservation ${id} of ${user} came early`] : []),
  ];
}
