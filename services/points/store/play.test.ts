import { randomUUID } from "node:crypto";
import { transaction } from "@todoke/kernel/db";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Play, plays } from "../ledger/testing-play.ts";
import { inSeconds, setup } from "../testing.ts";
import { selectBalance } from "./balances.ts";
import { book, bookWhatHasRunOut } from "./ledger.ts";

/** A unit of the play is an hour, and what ends does so at half past: so nothing depends on how long the test itself takes. */
const [hour, half] = [3_600, 1_800];
const start = Date.parse("2026-01-15T00:00:00.000Z");

async function playOn(t: Awaited<ReturnType<typeof setup>>) {
  const prefix = randomUUID();
  const play = new Play(
    [0, 1, 2].map((n) => `${prefix} ${n}`),
    {
      expiresAt: (units) => inSeconds(units * hour + half),
      ttlSeconds: (units) => units * hour + half,
      // To the coins it is always the full hour, and ends come after one.
      modelTime: (units) => new Date(start + units * hour * 1_000).toISOString(),
    },
  );
  return play;
}

test("what is played on the tables ends as it does with coins: what is read, what is booked, and every lot", async () => {
  await using t = await setup();
  await fc.assert(
    fc.asyncProperty(plays(25), async (batches) => {
      const play = await playOn(t);
      for (const batch of batches) {
        play.units += batch.wait;
        await t.age(`${batch.wait} hours`);
        const [done, expected] = await play.check(batch, async (changes) => {
          const booked = await transaction(t.db, (tx) =>
            book(
              tx,
              changes.map((change) => ({ change })),
            ),
          );
          return booked.map(({ result }) => result === "booked");
        });
        expect(done).toEqual(expected);
        for (const user of play.users) {
          const coins = play.coinsOf(user);
          const { balance, held } = await selectBalance(t.db, user);
          expect([balance, held]).toEqual([coins.count("user"), coins.count("held")]);
        }
      }
      await transaction(t.db, (tx) => bookWhatHasRunOut(tx, play.users));
      const lots = await t.rows(`select user_id, lot_id, remaining from point_lots where user_id = any($1)`, [
        play.users,
      ]);
      for (const { user_id, lot_id, remaining } of lots)
        expect(remaining).toBe(play.coinsOf(user_id).count("user", lot_id));
    }),
    { numRuns: 15 },
  );
  expect(await t.audit()).toEqual([]);
});
