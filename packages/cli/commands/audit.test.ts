import { randomUUID } from "node:crypto";
import { digestJson } from "@todoke/kernel/idempotency";
import { testDatabase } from "@todoke/kernel/testing";
import { changePoints, type PointsChange } from "@todoke/points/change-points";
import { servicesDatabase } from "@todoke/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openShell, runTodoke } from "../testing/command.ts";

/** A ledger with two users, without a running service. */
async function setup() {
  const t = await servicesDatabase(["points"]);
  const db = t.open({ schema: "points" });
  const change = changePoints(db, () => {});
  const ask = (wanted: PointsChange) =>
    change({ scope: "shop PUT /points", key: randomUUID(), requestHash: digestJson("") }, wanted);
  for (const userId of ["u_1", "u_2"])
    await ask({ kind: "ADD", userId, amount: 9223372036854775807n, expiresAt: null });
  await ask({ kind: "SUB", userId: "u_1", amount: 30n });
  await ask({ kind: "HOLD", userId: "u_1", amount: 5n, ttlSeconds: 900 });
  return {
    db,
    url: t.url,
    audit: (args = "points", url = t.url) => runTodoke(`audit ${args}`, { DATABASE_URL: url }),
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

let t: Awaited<ReturnType<typeof setup>>;
beforeAll(async () => {
  t = await setup();
});
afterAll(() => t[Symbol.asyncDispose]());

const balanceRule = "balance and held points are the sums of the user's transactions";

test("a correct ledger: prints what was checked and every rule", async () => {
  const { code, out, err } = await t.audit();
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const lines = out.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^points: checked 2 users, 4 transactions, 2 lots, 1 hold, 0 reservations, /);
  expect(lines).toContain(`  ✓ ${balanceRule}`);
  expect(lines.slice(1, -1).every((line) => line.startsWith("  ✓ "))).toBe(true);
  expect(lines.at(-1)).toBe(`All rules hold (${lines.length - 2}).`);
  const json = JSON.parse((await t.audit("points --json")).out);
  expect(json).toMatchObject({
    violations: 0,
    audits: [{ of: "points", checked: { users: 2, transactions: 4 }, findings: [] }],
  });
  expect(json.audits[0].rules).toHaveLength(lines.length - 2);
});

/** Changes the ledger, audits it, and rolls back. */
async function broken<T>(text: string, back: string, look: () => Promise<T>): Promise<T> {
  await t.db.query(text);
  try {
    return await look();
  } finally {
    await t.db.query(back);
  }
}

const balance = (by: number) => `update point_root set balance = balance - (${by}) where user_id = 'u_1'`;

test("a manually changed balance: prints the violated rules with the user, and exits with 1", async () => {
  const { code, out, err } = await broken(balance(1), balance(-1), () => t.audit());
  expect({ code, err }).toEqual({ code: 1, err: "" });
  expect(out).toContain(
    `  ✗ ${balanceRule}\n      u_1: root 9223372036854775771/5, transactions 9223372036854775772/5\n`,
  );
  expect(out).toContain("  ✗ the user's lots add up to the balance\n      u_1: balance 9223372036854775771, lots ");
  expect(out).toContain("  ✗ all accounts add up to 0\n");
  expect(out).toMatch(/\n3 of \d+ rules are violated\.\n$/);
  const json = await broken(balance(1), balance(-1), () => t.audit("points --json"));
  expect([json.code, JSON.parse(json.out).audits[0].findings]).toEqual([
    1,
    expect.arrayContaining([{ rule: balanceRule, about: "u_1", detail: expect.stringContaining("771/5") }]),
  ]);
});

test("a deleted hold and a DONE reservation without a grant are found", async () => {
  const taken = await broken(
    `create table kept as select * from point_holds; delete from point_holds`,
    `insert into point_holds select * from kept; drop table kept`,
    () => t.audit(),
  );
  expect([taken.code, taken.out]).toEqual([1, expect.stringContaining("  ✗ every hold matches its transactions")]);
  const reserved = await broken(
    `insert into point_reservations (id, user_id, point_amount, execute_at, status, idempotency_key, request_hash,
                                     transaction_id, sent_at)
     values (gen_random_uuid(), E'u_1\\x1b[31m', 7, '2020-01-01', 'DONE', 'k', sha256('k'), gen_random_uuid(), now())`,
    `delete from point_reservations`,
    () => t.audit(),
  );
  expect(reserved.code).toBe(1);
  expect(reserved.out).toMatch(
    /✗ every DONE reservation was .*\n {6}[0-9a-f-]{36}: 7 points for u_1�\[31m at .*granted nothing/,
  );
  expect(reserved.out).not.toContain("\u001b");
});

test("at most 20 violations of a rule are printed", async () => {
  const many = `insert into point_root (user_id, held) select 'x_' || n, 1 from generate_series(1, 100) n`;
  const { code, out } = await broken(many, `delete from point_root where user_id like 'x%'`, () => t.audit());
  expect(code).toBe(1);
  expect(out.match(/ {6}x_\d+: root 0\/1/g)).toHaveLength(20);
  expect(out).toContain("      (at most 20 violations of a rule are shown)\n");
});

test("the audit has a statement timeout of an hour and is read-only", async () => {
  const { code, err } = await broken(
    `alter table point_root rename to kept;
     create function witness() returns boolean language plpgsql as $$ begin
       raise exception 'timeout %, read only %', current_setting('statement_timeout'), current_setting('transaction_read_only');
     end $$;
     create view point_root as select * from kept where witness()`,
    `drop view point_root; drop function witness; alter table kept rename to point_root`,
    () => t.audit(),
  );
  expect([code, err]).toEqual([1, "✗ The database of points failed: timeout 1h, read only on\n"]);
});

test("an unknown service, a missing schema and a missing database are errors", async () => {
  expect((await t.audit("point")).err).toContain('There is no service "point". Did you mean "points"?');
  expect((await t.audit("points u_1")).code).toBe(2);
  await using empty = await testDatabase({ sets: [] });
  expect(await runTodoke("audit points", { DATABASE_URL: empty.url })).toEqual({
    code: 1,
    out: "",
    err: "✗ The schema of points is not up to date: run `todoke migrate points`.\n",
  });
  expect((await runTodoke("audit points")).code).toBe(2);
});

test("a URL without the required password is an error that names the database", async () => {
  const url = new URL(t.url);
  url.password = "";
  // In a separate process: the client leaves a connection that waits for a password, and the server cannot drop the database
  // while it is open.
  await using shell = openShell("todoke");
  const { code, err } = await shell.run("audit points", { DATABASE_URL: url.href });
  expect({ code, err }).toEqual({
    code: 1,
    err: "✗ The database of points requires a password, and its URL has none.\n",
  });
});
