import { test } from "vitest";
import { expectProbes, keepStatistics, setup } from "../testing.ts";
import { asOfText, nowText } from "./balances.ts";
import { knownText } from "./known-keys.ts";
import { loadText } from "./load-accounts.ts";
import { concernedText, lockText } from "./lock-roots.ts";
import { statementText } from "./statement.ts";
import { usersToSettleText } from "./users-to-settle.ts";
import { writeText } from "./write-ledger.ts";

/** A ledger of so many users, each of whom has got a lot and spent a part of it; every tenth holds something. */
const filled = (n: number, from = 1) => [
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

/** By which index each statement finds its rows, and by nothing else. */
const probes: readonly (readonly [string, readonly string[]])[] = [
  [concernedText, ["point_holds_pkey", "point_root_pkey", "point_transactions_pkey"]],
  [lockText, ["point_root_pkey"]],
  [knownText, ["idempotency_keys_pkey", "point_transaction_happens_once"]],
  [loadText, [...holds, ...lots, "point_lot_uses_pkey", "point_transactions_pkey"]],
  [writeText, []],
  [usersToSettleText, ["point_holds_ending", "point_lots_running_out"]],
  [nowText, ["point_holds_of_user", ...lots, "point_lot_uses_pkey", "point_reservations_to_come", "point_root_pkey"]],
  [
    asOfText,
    ["point_holds_of_user", ...lots, "point_lot_uses_pkey", "point_transactions_late", "point_transactions_time"],
  ],
  [statementText, ["point_transaction_versions_are_unique", "point_transactions_time"]],
];

test("every statement keeps to its index on an empty ledger, on a full one and on stale statistics", async () => {
  await using t = await setup();
  await keepStatistics(t.db);
  for (const state of ["", "analyze", ...filled(10_000), "analyze", ...filled(10_000, 20_000)]) {
    await t.db.query(state);
    for (const [sql, indexes] of probes) await expectProbes(t.db, sql, indexes);
  }
});
