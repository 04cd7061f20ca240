import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createHarness } from "../testing.ts";

test("a caller can lift its own halt, but that of another only with orders:resume", async () => {
  await using t = await createHarness();
  const { halt } = await t.process();
  const set = async (mode: string, holder: string, instrument?: string) =>
    (await halt(mode, instrument, holder)).statusCode;
  for (const instrument of [undefined, "ETH-USD"]) {
    expect(await set("halt", "desk", instrument)).toBe(200);
    const refused = await halt("active", instrument, "bot");
    expect([refused.statusCode, refused.json().code]).toEqual([403, "halt-of-another"]);
    expect(refused.json().detail).toContain("orders:resume");
    expect(await set("cancel-only", "bot", instrument)).toBe(403);
    // Every caller may set it again or stricter. The halt does not become that caller's own.
    expect(await set("halt", "bot", instrument)).toBe(200);
    expect(await set("active", "bot", instrument)).toBe(403);
    expect(await set("active", "desk", instrument)).toBe(403);
    expect(await set("active", "officer", instrument)).toBe(200);
    // After a lift the next halt is its caller's own.
    expect(await set("cancel-only", "bot", instrument)).toBe(200);
    expect(await set("active", "bot", instrument)).toBe(200);
    expect(await set("active", "desk", instrument)).toBe(200);
  }
  const { rows } = await t.db.query(`select count(*)::int as changes from trading_state_audit`);
  expect(rows).toEqual([{ changes: 12 }]);
});

test("a resume that waits for a concurrent halt of another caller sees it", async () => {
  await using t = await createHarness();
  const { halt } = await t.process();
  const holder = await t.db.connect();
  await holder.query(`begin; lock table trading_state_audit in exclusive mode`);
  const halted = halt("halt", undefined, "desk");
  const waiting = async (waiters: number) =>
    (
      await t.db.query(
        `select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`,
      )
    ).rowCount === waiters;
  await until("the halt waits", () => waiting(1));
  const resumed = halt("active", undefined, "bot");
  await until("both wait", () => waiting(2));
  await holder.query("commit");
  holder.release();
  expect([(await halted).statusCode, (await resumed).statusCode]).toEqual([200, 403]);
});
