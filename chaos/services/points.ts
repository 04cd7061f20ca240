/**
 * The points service in a run: its workload, and the checks on its ledger, its reservations and its recurring grants. What holds
 * between the tables of the ledger is checked by its audit.
 */
import { checkCommands } from "../checks/commands.ts";
import { groupBy } from "../checks/group.ts";
import { checkPublished } from "../checks/outbox.ts";
import { checkRealTime } from "../checks/real-time.ts";
import type { Evidence, Row } from "../evidence.ts";
import { type Attempt, type CommandHistory, groupCommands } from "../history.ts";
import { type InvariantName, type Violation, violation } from "../invariants.ts";
import { outboxTable } from "../watch.ts";
import type { ServiceUnderTest } from "./index.ts";
import { pointsWorkload } from "./points-workload.ts";

/** One occurrence of a recurring grant is due every so often, with its users in batches of a thousand. */
const occurrenceEveryMs = 2_000;
const usersOfSchedule = 5;

/** The commands that are transactions of the ledger, with the kinds that their keys are scoped by. */
const ledgerKinds: Readonly<Record<string, string>> = {
  add: "ADD",
  spend: "SUB",
  hold: "HOLD",
  capture: "CAPTURE",
  release: "RELEASE",
  refund: "REFUND",
};

export const points: ServiceUnderTest = {
  name: "points",
  copies: 2,
  load: () => import("@todoke/points"),
  env: () => ({ POINTS_PORT: "0", POINTS_BATCH_MAX: String(outboxTable.batchMax), POINTS_SCHEDULER_SECONDS: "1" }),
  commits: [
    "write point ledger",
    "insert reservations",
    "dispatch due",
    "mark granted",
    "cancel reservation",
    "commit",
  ],
  publishes: true,
  consumes: true,
  failpoints: ["scheduler.", "occurrence.", "grant.posted", "consumer.", "batch.", "relay.", "transaction.", "stop."],
  lock: `select from points.point_root where user_id < 'u_2' for update`,
  tables: [outboxTable],
  // The first occurrence of a schedule may be at any time; the next one of its cron expression is on February 29.
  prepare: (forMs) => `
insert into points.point_schedules (schedule_id, name, cron, time_zone, point_amount, reason, catch_up, next_run_at)
select gen_random_uuid(), 'schedule ' || n, '0 0 29 2 *', 'UTC', n, 'recurring', 'all',
       date_trunc('milliseconds', now()) + n * interval '${occurrenceEveryMs} milliseconds'
  from generate_series(1, ${Math.max(1, Math.floor(forMs / occurrenceEveryMs))}) n;
insert into points.point_schedule_users (schedule_id, user_id)
select schedule_id, 'u_' || u from points.point_schedules, generate_series(1, ${usersOfSchedule}) u`,
  workload: pointsWorkload,
  share: 0.5,
  unfinished: `select (select count(*) from points.outbox_events where status <> 'PUBLISHED')::int
                    + (select count(*) from points.point_reservations where status in ('PENDING', 'PROCESSING'))::int
                    + (select count(*) from points.point_holds where status = 'HELD')::int
                    + (select count(*) from points.point_lots where is_open and expires_at < 'infinity')::int
                    + (select count(*) from points.point_schedules
                        where status = 'ACTIVE' and next_run_at < now() + interval '1 hour')::int as unfinished`,
  evidence: {
    transactions: `select id::text, user_id, kind, version::int, point_amount::int, source, source_id as command, refers_to::text
                     from points.point_transactions`,
    reservations: `select r.id::text, r.idempotency_key, r.user_id, r.reason as command, r.status, r.point_amount::int,
                          r.schedule_id::text, r.transaction_id::text,
                          (extract(epoch from r.execute_at - r.updated_at) * 1000)::float8 as early_ms,
                          (select count(*) from points.point_transactions t
                            where t.source = 'reservation' and t.source_id = r.id::text)::int as grants
                     from points.point_reservations r`,
    schedules: `select s.schedule_id::text, s.name, s.next_run_at < now() as is_late,
                       (select count(*) from points.point_schedule_users u where u.schedule_id = s.schedule_id)::int as users
                  from points.point_schedules s`,
    events: `select event_id::text, event_type, aggregate_key as aggregate, version::int, status, position::int,
                    attempt_count, last_error, payload ->> 'transaction_id' as transaction
               from points.outbox_events order by position`,
    keys: `select scope, idem_key, response_status, convert_from(response_body, 'utf8') as answer
             from points.idempotency_keys`,
    processed: `select event_id::text from points.processed_events`,
    deadEvents: `select event_id::text, last_error from points.inbox_dlq where status <> 'RESOLVED'`,
  },
  effectiveCommands: (evidence) =>
    [...rows(evidence, "transactions"), ...rows(evidence, "reservations")].map(({ command }) => String(command)),
  check: (evidence) => [
    ...checkCommands(evidence, {
      service: "points",
      isCommand: ({ kind }) => kind in ledgerKinds,
      effects: rows(evidence, "transactions").filter(({ source }) => source === "chaos"),
      keys: rows(evidence, "keys"),
      scopeOf: ({ caller, kind }) => `${caller} ${ledgerKinds[kind]}`,
      mayReject: lacksPoints,
      matches: (effect, answer) => answer.transaction_id === effect.id,
    }),
    ...checkRealTime(evidence, {
      service: "points",
      isCommand: ({ kind }) => kind in ledgerKinds,
      aggregateOf: ({ user_id }) => String(user_id),
    }),
    ...checkEvents(evidence),
    ...checkPublished(evidence, rows(evidence, "events")),
    ...checkReservations(evidence),
    ...checkOccurrences(evidence),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`points/${name}`] ?? [];

/** Refusals of valid commands that meet a small balance, an ended hold, or a refunded transaction. */
function lacksPoints({ answer = "" }: Attempt): boolean {
  return /"code":"(insufficient-points|hold-ended|refund-too-large|lot-end-in-the-past)"/.test(answer);
}

/** A hold and its release have no event. */
const silent = ["HOLD", "RELEASE"];

/** One event per transaction that changes what a user owns; every event that a reservation is due is processed. */
function checkEvents(evidence: Evidence): Violation[] {
  const byTransaction = groupBy(rows(evidence, "events"), ({ transaction }) => String(transaction));
  const processed = new Set(rows(evidence, "processed").map(({ event_id }) => String(event_id)));
  const unprocessed = rows(evidence, "events").filter(
    ({ event_type, event_id }) => event_type === "PointReservationDue" && !processed.has(String(event_id)),
  );
  return [
    ...rows(evidence, "transactions").flatMap(({ id, kind, user_id, version }) => {
      const found = byTransaction.get(String(id))?.length ?? 0;
      if (found === (silent.includes(String(kind)) ? 0 : 1)) return [];
      return [violation("event-per-change", `${kind} ${id} of ${user_id} v${version} has ${found} events`)];
    }),
    ...unprocessed.map(({ event_id }) =>
      violation("event-takes-effect", `reservation ${event_id} is due, unprocessed`),
    ),
    ...rows(evidence, "deadEvents").map(({ event_id, last_error }) =>
      violation("event-takes-effect", `event ${event_id} was dead-lettered: ${last_error}`),
    ),
  ];
}

/** Accepted reservations exist once; those that are not cancelled are granted once, and not early. */
function checkReservations(evidence: Evidence): Violation[] {
  const reservations = rows(evidence, "reservations");
  const byCommand = groupBy(reservations, ({ command }) => String(command));
  const byPath = new Map(reservations.map((row) => [`/v1/points/reservations/${row.id}`, row]));
  const histories = groupCommands(evidence.history).filter(({ command }) => command.service === "points");
  const known = new Set(histories.map(({ command }) => command.id));
  const cancelled = new Set(histories.flatMap(({ command }) => (command.kind === "cancel" ? [command.path] : [])));
  return [
    ...histories.flatMap((one) => {
      if (one.command.kind === "reserve") return checkReserved(one, byCommand.get(one.command.id) ?? []);
      return one.command.kind === "cancel" ? checkCancelled(one, byPath.get(one.command.path)) : [];
    }),
    ...reservations.flatMap((row) => checkGrants(row, cancelled.has(`/v1/points/reservations/${row.id}`))),
    ...reservations.flatMap(({ id, command, schedule_id }) =>
      schedule_id !== null || known.has(String(command))
        ? []
        : [violation("effect-has-a-command", `reservation ${id} exists without a command`)],
    ),
  ];
}

function checkReserved({ command, attempts, end }: CommandHistory, its: readonly Row[]): Violation[] {
  const found: Violation[] = [];
  const report = (invariant: InvariantName, what: string) =>
    void found.push(violation(invariant, `reservation ${command.id} (${command.caller}) ${what}`));
  if (its.length > 1) report("done-once", `exists ${its.length} times`);
  const refusal = attempts.find((attempt) => attempt.end === "refused");
  if (refusal) report("valid-is-accepted", `was rejected: ${refusal.status} ${refusal.answer ?? ""}`);
  if (end === "refused" && its.length > 0) report("rejected-is-not-done", "was rejected, but exists");
  const oks = attempts.filter((attempt) => attempt.end === "ok");
  for (const { answer = "{}" } of oks)
    if (JSON.parse(answer).id !== its[0]?.id) report("accepted-is-done", `was answered ${answer}`);
  if (new Set(oks.map(({ answer = "" }) => JSON.stringify(JSON.parse(answer)))).size > 1)
    report("same-response", `was answered ${oks.map(({ answer }) => answer).join(" and ")}`);
  return found;
}

function checkCancelled({ command, attempts, end }: CommandHistory, row: Row | undefined): Violation[] {
  const status = row?.status;
  if (end === "ok" && status !== "CANCELLED")
    return [violation("accepted-is-done", `${command.path} was cancelled by ${command.id}, and is ${status}`)];
  const refusal = attempts.find((attempt) => attempt.end === "refused" && !attempt.answer?.includes("not-pending"));
  return refusal ? [violation("valid-is-accepted", `${command.id} was rejected: ${refusal.answer ?? ""}`)] : [];
}

function checkGrants({ id, status, grants, early_ms }: Row, wasCancelled: boolean): Violation[] {
  const found: Violation[] = [];
  const report = (invariant: InvariantName, what: string) =>
    void found.push(violation(invariant, `reservation ${id} is ${status} and ${what}`));
  if (Number(grants) > 1) report("reservation-granted-once", `was granted ${grants} times`);
  if (status === "CANCELLED" ? Number(grants) > 0 || !wasCancelled : status !== "DONE" || grants === 0)
    report("reservation-is-granted", `was granted ${grants} times`);
  if (status === "DONE" && Number(early_ms) > 0) report("not-before-its-time", `was granted ${early_ms} ms early`);
  return found;
}

/** Every schedule had one occurrence. */
function checkOccurrences(evidence: Evidence): Violation[] {
  const made = groupBy(rows(evidence, "reservations"), ({ schedule_id }) => String(schedule_id));
  return rows(evidence, "schedules").flatMap(({ schedule_id, name, users, is_late }) => {
    const reserved = made.get(String(schedule_id)) ?? [];
    const of = new Set(reserved.map(({ user_id }) => user_id)).size;
    if (of === users && reserved.length === users && is_late !== true) return [];
    return [violation("occurrence-is-complete", `${name} has ${reserved.length} reservations of ${of}/${users} users`)];
  });
}
