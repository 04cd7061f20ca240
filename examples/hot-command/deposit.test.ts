import { kernelMigrations } from "@todoke/kernel/migrations";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createDeposit } from "./deposit.ts";

async function setup() {
  const own = { name: "accounts", dir: new URL("./migrations/", import.meta.url) };
  const t = await testDatabase({ sets: [kernelMigrations, own] });
  const statements: string[] = [];
  t.db.on("acquire", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const recording = (...args: unknown[]) => {
      const { name } = Object(args[0]) as { name?: string };
      if (name === "deposit") statements.push(name);
      return query(...args);
    };
    Object.assign(client, { query: recording });
  });
  return Object.assign(t, { deposit: createDeposit(t.db), statements });
}

test("a hundred concurrent deposits take a few statements, and each takes effect once", async () => {
  await using t = await setup();
  const keys = Array.from({ length: 100 }, (_, n) => `key-${n}`);
  await Promise.all(keys.map((key) => t.deposit(key, { account: key, amount: 1 })));
  expect(t.statements.length).toBeLessThan(10);
  const { rows } = await t.db.query(
    `select (select sum(balance) from accounts)::int as balance, (select count(*) from outbox_events)::int as events`,
  );
  expect(rows).toEqual([{ balance: 100, events: 100 }]);
});

test("a repeated key replays the response, byte for byte, and another body is a conflict", async () => {
  await using t = await setup();
  const first = await t.deposit("a", { account: "ann", amount: 10 });
  const second = await t.deposit("a", { account: "ann", amount: 10 });
  expect(second).toMatchObject({ status: 200, body: first.body, replayed: true });
  expect(first.body.toString()).toBe('{"balance": 10}');
  await expect(t.deposit("a", { account: "ann", amount: 20 })).rejects.toMatchObject({ code: "idempotency-conflict" });
});

test("a refused deposit changes nothing", async () => {
  await using t = await setup();
  await expect(t.deposit("a", { account: "ann", amount: 1001 })).rejects.toMatchObject({ code: "amount-too-high" });
  expect((await t.db.query(`select from accounts`)).rowCount).toBe(0);
  expect((await t.db.query(`select from idempotency_keys`)).rowCount).toBe(0);
});
