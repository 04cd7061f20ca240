import { randomUUID } from "node:crypto";
import { transaction } from "@todoke/kernel/db";
import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Play, plays } from "../ledger/testing/play.ts";
import { selectBalance } from "../store/balances.ts";
import { inSeconds, setup } from "../testing.ts";
import { postChanges, postExpirations } from "./post-changes.ts";

// A unit of time is an hour, and lots and holds end at half past, so the duration of the test does not matter.
const [hour, half] = [3_600, 1_800];
const clock = {
  expiresAt: (units: number) => inSeconds(units * hour + half),
  ttlSeconds: (units: number) => units * hour + half,
  modelTime: (units: number) => new Date(units * hour * 1_000).toISOString(),
  modelEnd: (units: number) => new Date((units * hour + half) * 1_000).toISOString(),
};

test("random changes give the same balances and lots in the database as in the model", async () => {
  await using t = await setup();
  await fc.assert(
    fc.asyncProperty(plays(25), async (batches) => {
      const prefix = randomUUID();
      const users = [0, 1, 2].map((n) => `${prefix} ${n}`);
      const play = new Play(users, clock);
      for (const batch of batches) {
        play.units += batch.wait;
        await t.age(`${batch.wait} hours`);
        const [done, expected] = await play.check(batch, async (changes) => {
          const posted = await transaction(t.db, (tx) =>
            postChanges(
              tx,
              changes.map((change) => ({ change })),
            ),
          );
          return posted.map(({ result }) => result === "posted");
        });
        expect(done).toEqual(expected);
        for (const user of users) {
          const coins = play.coinsOf(user);
          const { balance, held } = await selectBalance(t.db, user);
          expect([balance, held]).toEqual([coins.count("user"), coins.count("held")]);
        }
      }
      await transaction(t.db, (tx) => postExpirations(tx, users));
      const lots = await t.rows(`select user_id, lot_id, remaining from point_lots where user_id = any($1)`, [
        play.users,
      ]);
      for (const { user_id, lot_id, remaining } of lots)
        expect(remaining).toBe(play.coinsOf(user_id).count("user", lot_id));
    }),
    // Shrinking would take minutes here; use the seed in the test in memory.
    { numRuns: repetitions(25), endOnFailure: true },
  );
  expect(await t.audit()).toEqual([]);
});
