/** The look-ups of an id in the ledger and the reservations. */
import { aggregateAt, entriesSql, type Lookup } from "@todoke/kernel/why";

const ofUserMax = 10;

const transactionEntries = (from: string) =>
  entriesSql({
    kind: "'transaction'",
    id: "t.id",
    at: "t.created_at",
    state: "t.kind",
    detail: "t.moved || ' points of ' || t.user_id || ', then ' || t.balance_after || coalesce(': ' || t.reason, '')",
    links: [
      ["user", "t.user_id"],
      ["transaction", "t.refers_to"],
      ["reservation", "case t.source when 'reservation' then t.source_id end"],
      ["aggregate", aggregateAt("t.user_id", "t.created_at")],
    ],
    from,
  });

/** The id of a reservation is also that of the event that says that it is due. */
const reservationEntries = (from: string) =>
  entriesSql({
    kind: "'reservation'",
    id: "r.id",
    at: "r.created_at",
    state: "r.status",
    attempt: "r.attempt_count",
    error: "r.last_error",
    nextRetryAt: "case r.status when 'PENDING' then r.execute_at end",
    detail:
      "r.point_amount || ' points for ' || r.user_id || ' at ' || to_char(r.execute_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS')",
    links: [
      ["user", "r.user_id"],
      ["transaction", "r.transaction_id"],
      ["event", "case when r.sent_at is not null then r.id end"],
    ],
    from,
  });

const holdEntries = (from: string) =>
  entriesSql({
    kind: "'hold'",
    id: "h.hold_id",
    at: "h.created_at",
    state: "h.status",
    detail: "h.amount || ' points of ' || h.user_id || ', captured ' || h.captured || ', released ' || h.released",
    links: [
      ["user", "h.user_id"],
      ["transaction", "h.hold_id"],
    ],
    from,
  });

const balanceEntries = entriesSql({
  kind: "'balance'",
  id: "b.user_id",
  at: "b.updated_at",
  state: "b.balance",
  detail: "b.balance || ' points, ' || b.held || ' held'",
  links: [["user", "b.user_id"]],
  from: "point_root b where b.user_id = $1",
});

export const pointsLookups: readonly Lookup[] = [
  { by: "transaction", shape: "uuid", sql: transactionEntries("point_transactions t where t.id = $1::uuid") },
  { by: "reservation", shape: "uuid", sql: reservationEntries("point_reservations r where r.id = $1::uuid") },
  { by: "hold", shape: "uuid", sql: holdEntries("point_holds h where h.hold_id = $1::uuid") },
  {
    by: "user",
    shape: "text",
    sql: [
      balanceEntries,
      transactionEntries(
        `(select * from point_transactions where user_id = $1 order by version desc limit ${ofUserMax}) t`,
      ),
      reservationEntries(`(select * from point_reservations where user_id = $1 order by id desc limit ${ofUserMax}) r`),
    ].join("\nunion all\n"),
  },
];
