/** What the tables of points and of notification say of reservations, and all that should not be so. */
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { type Booked, endOf } from "./points-booking.ts";

interface Row {
  readonly id: string;
  readonly user: string;
  readonly amount: number;
  readonly status: string;
  /** How often its points were granted. */
  readonly grants: number;
  /** Whether it was taken up, or granted, before its time. */
  readonly early: boolean;
  /** How often its user was told of it: of the points, or that they did not come. */
  readonly told: number;
  /** Made by a recurring grant, and not by anybody's request. */
  readonly recurring: boolean;
}

/** The ledger keeps milliseconds, a reservation microseconds. */
const recordText = `
with news as materialized (
  select coalesce(e.payload ->> 'reservation_id', e.payload ->> 'source_id') as reservation_id,
         count(n.notification_id)::int as told
    from outbox_events e left join notification.notifications n on n.event_id = e.event_id and n.status = 'SENT'
   where e.subject = 'points.events' group by 1
),
granted as materialized (
  select source_id, user_id, point_amount, count(*)::int as grants, min(created_at) as granted_at
    from point_transactions where kind = 'GRANT' group by 1, 2, 3
)
select r.id, r.user_id as "user", r.point_amount::int as amount, r.status,
       coalesce(g.grants, 0) as grants, coalesce(n.told, 0) as told,
       r.schedule_id is not null as recurring,
       coalesce(r.sent_at < r.execute_at, false)
         or coalesce(g.granted_at < date_trunc('milliseconds', r.execute_at), false) as early
  from point_reservations r
  left join granted g on g.source_id = r.id::text and g.user_id = r.user_id and g.point_amount = r.point_amount
  left join news n on n.reservation_id = r.id::text`;

/** What is asked again and again must cost next to nothing: each is an index probe, but for the last, which is a count. */
const waits: Readonly<Record<string, string>> = {
  "every reservation has ended": `select from point_reservations where status in ('PENDING', 'PROCESSING') limit 1`,
  "every event is published": `select from outbox_events where status in ('PENDING', 'IN_FLIGHT') limit 1`,
  "everybody is told": `
    select where (select count(*) from outbox_events where subject = 'points.events')
               > (select count(*) from notification.notifications where status = 'SENT')`,
};

/** Resolves when there is nothing left to be taken up, granted, published or told. */
export async function untilAllDone(db: Db): Promise<void> {
  for (const [what, left] of Object.entries(waits))
    await until(what, async () => (await db.query(left)).rowCount === 0, { withinMs: 120_000 });
}

/** Everything that was answered has happened once, and nothing else has. */
export async function recordFaults(db: Db, booked: readonly Booked[]): Promise<string[]> {
  const { rows } = await db.query<Row>(recordText);
  const known = new Map(rows.map((row) => [row.id, row]));
  const lost = booked.filter(({ id }) => !known.has(id)).map(({ id }) => `reservation ${id} was answered, and is lost`);
  const answered = new Set(booked.map(({ id }) => id));
  const doubled = rows
    .filter(({ id, recurring }) => !recurring && !answered.has(id))
    .map(({ id }) => `nobody was answered reservation ${id}`);
  const orphans = await db.query<{ id: string }>(
    `select id from point_transactions where kind = 'GRANT' and source_id not in (select id::text from point_reservations)`,
  );
  return [
    ...lost,
    ...doubled,
    ...rows.flatMap(rowFaults),
    ...orphans.rows.map(({ id }) => `transaction ${id} grants what nobody reserved`),
    ...(await auditLedger(db)).map(({ rule, about, detail }) => `not so: ${rule} (${about}: ${detail})`),
  ];
}

function rowFaults({ id, user, status, grants, early, told }: Row): string[] {
  const times = endOf(user) === "DONE" ? 1 : 0;
  return [
    ...(status === endOf(user) ? [] : [`reservation ${id} of ${user} is ${status}`]),
    ...(grants === times ? [] : [`reservation ${id} of ${user} was granted ${grants} times`]),
    ...(told === 1 ? [] : [`${user} was told ${told} times of reservation ${id}`]),
    ...(early ? [`reservation ${id} of ${user} came early`] : []),
  ];
}
