import type { Db } from "@todoke/kernel/db";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";
import { selectNewSql, selectStartSql } from "./new-notifications.ts";

/** The plan that a cached statement has, whatever its parameters turn out to be. */
async function genericPlan(db: Db, sql: string): Promise<string> {
  const { rows } = await db.query(`explain (generic_plan) ${sql}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

const written = (n: number, users: number) => `
  insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
  select gen_random_uuid(), gen_random_uuid(), 'u' || i % ${users}, 'T', '{}', now() from generate_series(1, ${n}) i`;

test("to follow an inbox is an index probe on an empty table, on stale statistics, and for users with much", async () => {
  await using t = await setup();
  const states = ["", "analyze notifications", written(20_000, 5_000), "analyze notifications", written(20_000, 2)];
  for (const state of [...states, "analyze notifications"]) {
    await t.db.query(state);
    for (const sql of [selectNewSql, selectStartSql]) {
      const plan = await genericPlan(t.db, sql);
      expect(plan, `after ${state}`).not.toMatch(/Seq Scan|Bitmap|Hash|Merge/);
      // From the position on, in order: what lies before it is never read, and what is found is not sorted.
      expect(plan, `after ${state}`).toMatch(
        /Limit.*\n\s*-> {2}Index (Only )?Scan (Backward )?using notifications_followed .*\n\s*Index Cond: \(\(?user_id = .*xid/,
      );
    }
  }
});
