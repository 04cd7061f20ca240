import { afterAll, beforeAll, expect, test } from "vitest";
import { inSeconds, longAgo, setup } from "../testing.ts";
import { type AuditFinding, audit, perRuleMax } from "./audit.ts";

let t: Awaited<ReturnType<typeof ledger>>;
beforeAll(async () => {
  t = await ledger();
});
afterAll(() => t[Symbol.asyncDispose]());

/** A bit of everything: additions, spends, refunds, holds open and ended, what ran out, and reservations. */
async function ledger() {
  const t = await setup();
  await t.add("u_2", 9n, { expiresAt: inSeconds(3_600) });
  await t.age("2 hours");
  await t.add("u_1", 100n, { expiresAt: inSeconds(3_600) });
  await t.add("u_1", 50n);
  const spent = await t.sub("u_1", 30n);
  await t.refund(spent.json.transaction_id ?? "", 10n);
  const [captured, released] = [await t.hold("u_1", 40n), await t.hold("u_1", 5n)];
  await t.capture(captured.json.hold_id ?? "", 15n);
  await t.release(released.json.hold_id ?? "");
  await t.hold("u_1", 7n);
  const done = await t.reserve({ user: "u_2", amount: 20n, at: longAgo });
  await t.scheduler().runOnce();
  await t.work(await t.dueEvents());
  await t.reserve({ user: "u_2", at: "2999-01-01T00:00:00Z" });
  return { ...t, doneId: done.id };
}

test("a sound ledger has no findings, and it is said how much was looked at, by which rules", async () => {
  const { checked, rules, findings } = await audit(t.db);
  expect(findings).toEqual([]);
  expect(checked).toEqual({ users: 2, transactions: 13, lots: 4, holds: 3, reservations: 2 });
  expect(rules.length).toBe(13);
});

/** What the audit finds once this was done to the ledger; it is undone again. */
async function findingsAfter(breaks: string): Promise<readonly AuditFinding[]> {
  const client = await t.db.connect();
  try {
    // What the trigger keeps everybody from: whoever can do this is who the audit is for.
    await client.query(`begin; alter table point_transactions disable trigger all`);
    await client.query(breaks);
    return (await audit(client)).findings;
  } finally {
    await client.query(`rollback`);
    client.release();
  }
}

test.each<[rule: RegExp, breaks: string]>([
  [/balance is the sum/, `update point_root set balance = balance + 1 where user_id = 'u_1'`],
  [/balance is the sum/, `delete from point_root where user_id = 'u_2'`],
  [/versions count/, `update point_root set version = version + 1 where user_id = 'u_1'`],
  [/lots add up/, `update point_lots set remaining = remaining - 1 where remaining > 0`],
  [/open holds add up/, `update point_holds set amount = amount + 1 where status = 'HELD'`],
  [/all accounts add up to 0/, `update point_transactions set moved = 1, point_amount = -1 where kind = 'SUB'`],
  [/goes on from the one before/, `update point_transactions set balance_after = balance_after + 1 where kind = 'SUB'`],
  [
    /goes on from the one before/,
    `update point_transactions set created_at = created_at + interval '1 h' where kind = 'SUB'`,
  ],
  [/every addition is one lot/, `update point_lots set user_id = 'u_3' where user_id = 'u_2'`],
  [/every addition is one lot/, `delete from point_lots where user_id = 'u_2'`],
  [/every hold is booked/, `update point_holds set captured = 14, released = 26 where status = 'CAPTURED'`],
  [/every hold is booked/, `delete from point_holds where status = 'RELEASED'`],
  [/taken from lots is what was spent/, `delete from point_lot_uses`],
  [/what left a lot/, `update point_lots set granted = granted + 1`],
  [/what came back/, `update point_lot_uses set returned = returned - 1 where returned > 0`],
  [/DONE was granted/, `update point_reservations set point_amount = 21 where status = 'DONE'`],
  [/DONE was granted/, `update point_reservations set user_id = 'u_1' where status = 'DONE'`],
  [/DONE was granted/, `update point_reservations set transaction_id = id where status = 'DONE'`],
  [/DONE was granted/, `update point_reservations set execute_at = now() + interval '1 h' where status = 'DONE'`],
  [/DONE was granted/, `update point_transactions set idempotency_key = 'another' where kind = 'GRANT'`],
  [
    /of one that is DONE/,
    `update point_reservations set status = 'PROCESSING', transaction_id = null where status = 'DONE'`,
  ],
  [/of one that is DONE/, `delete from point_reservations where status = 'DONE'`],
  [/of one that is DONE/, `update point_transactions set idempotency_key = 'reservation:' || id where kind = 'SUB'`],
])("%s is found broken by: %s", async (rule, breaks) => {
  expect(await findingsAfter(breaks)).toContainEqual({
    rule: expect.stringMatching(rule),
    about: expect.stringMatching(/./),
    detail: expect.stringMatching(/./),
  });
});

test("to the millisecond: a grant in the same one as its time, but before its microsecond, is in time", async () => {
  const after = (by: string) =>
    findingsAfter(
      `update point_reservations r set execute_at = t.created_at + interval '${by}'
         from point_transactions t where t.id = r.transaction_id`,
    );
  expect(await after("999 microseconds")).toEqual([]);
  expect(await after("1 millisecond")).toMatchObject([{ about: t.doneId }]);
});

test("of more wrong than anybody reads each broken rule tells its first findings, so that none hides another", async () => {
  await using t = await setup();
  await t.db.query(`insert into point_root (user_id, balance) select 'u_' || n, 1 from generate_series(1, 500) n`);
  const told: Record<string, number> = {};
  for (const { rule } of await t.audit()) told[rule] = (told[rule] ?? 0) + 1;
  expect(told).toEqual({
    "the balance is the sum of the user's transactions, and so is what is held": perRuleMax,
    "the user's lots add up to the balance": perRuleMax,
    "all accounts add up to 0": 1,
  });
});
