import { type AuditFinding, perRuleMax } from "@todoke/kernel/audit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inSeconds, longAgo, setup } from "../testing.ts";
import { audit } from "./audit.ts";

let t: Awaited<ReturnType<typeof ledger>>;
beforeAll(async () => {
  t = await ledger();
});
afterAll(() => t[Symbol.asyncDispose]());

/** Additions, spends, refunds, open and ended holds, expired lots, and reservations. */
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

test("a correct ledger has no findings, and the audit reports what it checked", async () => {
  const { checked, rules, findings } = await audit(t.db);
  expect(findings).toEqual([]);
  expect(checked).toEqual({ users: 2, transactions: 13, lots: 4, holds: 3, reservations: 2 });
  expect(rules.length).toBe(13);
});

/** The findings after `breaks`, which is rolled back. */
async function findingsAfter(breaks: string): Promise<readonly AuditFinding[]> {
  const client = await t.db.connect();
  try {
    // The append-only trigger would prevent this.
    await client.query(`begin; alter table point_transactions disable trigger all`);
    await client.query(breaks);
    return (await audit(client)).findings;
  } finally {
    await client.query(`rollback`);
    client.release();
  }
}

test.each<[rule: RegExp, breaks: string]>([
  [/balance and held points/, `update point_root set balance = balance + 1 where user_id = 'u_1'`],
  [/balance and held points/, `delete from point_root where user_id = 'u_2'`],
  [/versions count/, `update point_root set version = version + 1 where user_id = 'u_1'`],
  [/lots add up/, `update point_lots set remaining = remaining - 1 where remaining > 0`],
  [/open holds add up/, `update point_holds set amount = amount + 1 where status = 'HELD'`],
  [/all accounts add up to 0/, `update point_transactions set moved = 1, point_amount = -1 where kind = 'SUB'`],
  [/continues from the previous/, `update point_transactions set balance_after = balance_after + 1 where kind = 'SUB'`],
  [
    /continues from the previous/,
    `update point_transactions set created_at = created_at + interval '1 h' where kind = 'SUB'`,
  ],
  [/every addition has one lot/, `update point_lots set user_id = 'u_3' where user_id = 'u_2'`],
  [/every addition has one lot/, `delete from point_lots where user_id = 'u_2'`],
  [/every hold matches/, `update point_holds set captured = 14, released = 26 where status = 'CAPTURED'`],
  [/every hold matches/, `delete from point_holds where status = 'RELEASED'`],
  [/lot uses add up/, `delete from point_lot_uses`],
  [/missing from a lot/, `update point_lots set granted = granted + 1`],
  [/returned points match/, `update point_lot_uses set returned = returned - 1 where returned > 0`],
  [/every DONE reservation was granted/, `update point_reservations set point_amount = 21 where status = 'DONE'`],
  [/every DONE reservation was granted/, `update point_reservations set user_id = 'u_1' where status = 'DONE'`],
  [/every DONE reservation was granted/, `update point_reservations set transaction_id = id where status = 'DONE'`],
  [
    /every DONE reservation was granted/,
    `update point_reservations set execute_at = now() + interval '1 h' where status = 'DONE'`,
  ],
  [
    /every DONE reservation was granted/,
    `update point_transactions set idempotency_key = 'another' where kind = 'GRANT'`,
  ],
  [
    /belongs to a DONE reservation/,
    `update point_reservations set status = 'PROCESSING', transaction_id = null where status = 'DONE'`,
  ],
  [/belongs to a DONE reservation/, `delete from point_reservations where status = 'DONE'`],
  [
    /belongs to a DONE reservation/,
    `update point_transactions set idempotency_key = 'reservation:' || id where kind = 'SUB'`,
  ],
])("the rule %s is broken by: %s", async (rule, breaks) => {
  expect(await findingsAfter(breaks)).toContainEqual({
    rule: expect.stringMatching(rule),
    about: expect.stringMatching(/./),
    detail: expect.stringMatching(/./),
  });
});

test("a grant in the same millisecond as its reservation's time is not early", async () => {
  const after = (by: string) =>
    findingsAfter(
      `update point_reservations r set execute_at = t.created_at + interval '${by}'
         from point_transactions t where t.id = r.transaction_id`,
    );
  expect(await after("999 microseconds")).toEqual([]);
  expect(await after("1 millisecond")).toMatchObject([{ about: t.doneId }]);
});

test("the findings are limited per rule, so no rule hides another", async () => {
  await using t = await setup();
  await t.db.query(`insert into point_root (user_id, balance) select 'u_' || n, 1 from generate_series(1, 500) n`);
  const findings: Record<string, number> = {};
  for (const { rule } of await t.audit()) findings[rule] = (findings[rule] ?? 0) + 1;
  expect(findings).toEqual({
    "balance and held points are the sums of the user's transactions": perRuleMax,
    "the user's lots add up to the balance": perRuleMax,
    "all accounts add up to 0": 1,
  });
});
