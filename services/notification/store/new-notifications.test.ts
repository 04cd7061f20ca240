import { genericPlan } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";
import { selectNewNotificationsSql, selectStartSql } from "./new-notifications.ts";

const written = (n: number, users: number) => `
  insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
  select gen_random_uuid(), gen_random_uuid(), 'u' || i % ${users}, 'T', '{}', now() from generate_series(1, ${n}) i`;

test("stream reads are index scans on empty, stale and large tables", async () => {
  await using t = await setup();
  const states = ["", "analyze notifications", written(20_000, 5_000), "analyze notifications", written(20_000, 2)];
  for (const state of [...states, "analyze notifications"]) {
    await t.db.query(state);
    for (const sql of [selectNewNotificationsSql, selectStartSql]) {
      const plan = await genericPlan(t.db, sql);
      expect(plan, `after ${state}`).not.toMatch(/Seq Scan|Bitmap|Hash|Merge/);
      // Starts at the position and reads in order: no earlier rows are read, and nothing is sorted.
      expect(plan, `after ${state}`).toMatch(
        /Limit.*\n\s*-> {2}Index (Only )?Scan (Backward )?using notifications_followed .*\n\s*Index Cond: \(\(?user_id = .*xid/,
      );
    }
  }
});
