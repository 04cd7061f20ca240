import { test } from "vitest";
import { expectProbes, keepStatistics, setup } from "../testing.ts";
import { balanceAsOfSql, balancesSql } from "./balances.ts";
import { insertOccurrenceSql, lockDueScheduleSql } from "./change-schedules.ts";
import { dispatchDueSql, redispatchOverdueSql } from "./dispatch-reservations.ts";
import { existingTransactionsSql } from "./existing-transactions.ts";
import { cancelPendingSql, insertReservationsSql, lockReservationSql } from "./insert-reservations.ts";
import { loadAccountsSql } from "./load-accounts.ts";
import { affectedUsersSql, lockRootsSql } from "./lock-roots.ts";
import { lockDueReservationsSql, lockReservationsSql, markFailedSql, markGrantedSql } from "./settle-reservations.ts";
import { statementSql } from "./statement.ts";
import { usersWithExpiredSql } from "./users-with-expired.ts";
import { writeLedgerSql } from "./write-ledger.ts";

/** Statements, with the indexes by which each finds its rows. */
type Probes = readonly (readonly [sql: string, indexes: readonly string[]])[];

async function expectProbesInEachState(states: readonly string[], probes: Probes): Promise<void> {
  await using t = await setup();
  await keepStatistics(t.db);
  for (const state of states) {
    await t.db.query(state);
    for (const [sql, indexes] of probes) await expectProbes(t.db, sql, indexes);
  }
}

/** `n` users with a partly spent lot each; every tenth has a hold. */
const ledgerRows = (n: number, from = 1) => [
  `insert into point_root (user_id, balance, version) select 'u' || i, 5, 2 from generate_series(${from}, ${from + n}) i`,
  `insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                   version, effective_at, created_at)
   select gen_random_uuid(), 'a' || i, 'u' || i, 9, 'ADD', 9, 9, 0, 1, now(), now() from generate_series(${from}, ${from + n}) i`,
  `insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
   select gen_random_uuid(), 'u' || i, 9, i % 2, case when i % 3 = 0 then now() + interval '1 day' else 'infinity' end, 1, now()
     from generate_series(${from}, ${from + n}) i`,
  `insert into point_lot_uses (transaction_id, lot_id, amount) select gen_random_uuid(), lot_id, 4 from point_lots`,
  `insert into point_holds (hold_id, user_id, amount, ends_at, created_at, updated_at)
   select gen_random_uuid(), 'u' || i, 1, now() + interval '1 hour', now(), now() from generate_series(${from}, ${from + n}, 10) i`,
];

const holds = ["point_holds_of_user", "point_holds_pkey"];
const lots = ["point_lots_pkey", "point_lots_to_spend"];

const ledgerProbes: Probes = [
  [affectedUsersSql, ["point_holds_pkey", "point_root_pkey", "point_transactions_pkey"]],
  [lockRootsSql, ["point_root_pkey"]],
  [existingTransactionsSql, ["idempotency_keys_pkey", "point_transaction_happens_once"]],
  [loadAccountsSql, [...holds, ...lots, "point_lot_uses_pkey", "point_transactions_pkey"]],
  [writeLedgerSql, []],
  [usersWithExpiredSql, ["point_holds_ending", "point_lots_running_out"]],
  [
    balancesSql,
    ["point_holds_of_user", ...lots, "point_lot_uses_pkey", "point_reservations_to_come", "point_root_pkey"],
  ],
  [
    balanceAsOfSql,
    ["point_holds_of_user", ...lots, "point_lot_uses_pkey", "point_transactions_late", "point_transactions_time"],
  ],
  [statementSql, ["point_transaction_versions_are_unique", "point_transactions_time"]],
];

test("ledger statements use their indexes on empty tables, full tables and stale statistics", () =>
  expectProbesInEachState(
    ["", "analyze", ...ledgerRows(10_000), "analyze", ...ledgerRows(10_000, 20_000)],
    ledgerProbes,
  ));

/** 10,000 reservations. */
const reservationRows = (status: string, sentAt: string, from: number) => `
insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash, status, sent_at)
select gen_random_uuid(), 'u_' || n % 1000, 1, timestamptz '2020-01-01' + n * interval '1 s', 'k' || n, sha256(''),
       '${status}', ${sentAt} from generate_series(${from}, ${from + 9_999}) n`;

const key = "point_reservations_pkey";

const reservationProbes: Probes = [
  [insertReservationsSql, ["point_reservation_key_is_unique"]],
  [lockReservationSql, [key]],
  [cancelPendingSql, [key]],
  [dispatchDueSql, ["all of point_reservations_sent", "point_reservations_due"]],
  [redispatchOverdueSql, ["point_reservations_sent"]],
  [lockReservationsSql, [key]],
  [lockDueReservationsSql, ["point_reservations_due"]],
  [markGrantedSql, [key]],
  [markFailedSql, [key]],
  [lockDueScheduleSql, ["point_schedules_due"]],
  [insertOccurrenceSql, ["point_schedule_users_pkey", "point_schedules_pkey"]],
];

test("reservation statements use their indexes on empty tables, full tables and stale statistics", () => {
  const fill = [reservationRows("PENDING", "null", 1), reservationRows("PROCESSING", "now()", 10_001)];
  const states = ["", "analyze", ...fill, "analyze", reservationRows("PENDING", "null", 20_001)];
  return expectProbesInEachState(states, reservationProbes);
});
