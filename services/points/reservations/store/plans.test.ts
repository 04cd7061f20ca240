import { test } from "vitest";
import { expectProbes, keepStatistics } from "../../testing.ts";
import { setup } from "../testing.ts";
import { resendText, takeText } from "./due.ts";
import { cancelText, lockText as lockOneText, reserveText } from "./reserve.ts";
import { dueText, occurText } from "./schedules.ts";
import { failedText, grantedText, lockText } from "./settle.ts";

/** So many reservations: PENDING, or, with a time at which they were sent, PROCESSING. */
const filled = (status: string, sentAt: string, from: number) => `
insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash, status, sent_at)
select gen_random_uuid(), 'u_' || n % 1000, 1, timestamptz '2020-01-01' + n * interval '1 s', 'k' || n, sha256(''),
       '${status}', ${sentAt} from generate_series(${from}, ${from + 9_999}) n`;

const key = "point_reservations_pkey";

/** By which index each statement finds its rows, and by nothing else. */
const probes: readonly (readonly [string, readonly string[]])[] = [
  [reserveText, ["point_reservation_key_is_unique"]],
  [lockOneText, [key]],
  [cancelText, [key]],
  [takeText, ["all of point_reservations_sent", "point_reservations_due"]],
  [resendText, ["point_reservations_sent"]],
  [lockText, [key]],
  [grantedText, [key]],
  [failedText, [key]],
  [dueText, ["point_schedules_due"]],
  [occurText, ["point_schedule_users_pkey", "point_schedules_pkey"]],
];

test("every statement keeps to its index on empty tables, on full ones and on stale statistics", async () => {
  await using t = await setup();
  await keepStatistics(t.db);
  const fill = [filled("PENDING", "null", 1), filled("PROCESSING", "now()", 10_001)];
  for (const state of ["", "analyze", ...fill, "analyze", filled("PENDING", "null", 20_001)]) {
    await t.db.query(state);
    for (const [sql, indexes] of probes) await expectProbes(t.db, sql, indexes);
  }
});
