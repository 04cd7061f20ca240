import { expect, test } from "vitest";
import type { Db } from "../db/index.ts";
import { genericPlan, testDatabase } from "../testing/index.ts";
import { command, digestJson, type KeyColumns, toKeyColumns } from "./index.ts";

interface Deposit {
  readonly account: string;
  readonly amount: number;
  readonly event_id: string;
}

/** A command as a service writes it: adds to an account, unless the amount is too high. */
const deposit = command<Deposit, "too_much">({
  name: "deposit",
  columns: "account text, amount int, event_id uuid",
  lookup: {
    select: "a.balance as balance_before",
    join: "left join lateral (select a.balance from accounts a where a.account = r.account limit 1) a on true",
  },
  refusals: { too_much: "amount > 100" },
  refusalDetail: "coalesce(balance_before, 0)::text",
  change: `
changed as (
  insert into accounts as a (account, balance) select account, amount from accepted order by account
  on conflict (account) do update set balance = a.balance + excluded.balance, version = a.version + 1
  returning account, balance, version
),
results as materialized (
  select a.*, c.version, 200 as response_status, convert_to(c.balance::text, 'utf8') as response_body
    from accepted a join changed c on c.account = a.account
   order by a.ordinal desc -- Results may have any order.
)`,
  events: {
    subject: "bank.events",
    eventId: "event_id",
    eventType: "'Deposited'",
    aggregateKey: "account",
    version: "version",
    occurredAt: "now()",
    fields: { amount: "amount" },
    optionalFields: { large: "case when amount > 50 then true end" },
  },
});

const setup = () =>
  testDatabase({
    tables: `create table accounts (account text primary key, balance int not null, version int not null default 1)`,
  });

let ids = 0;
const request = (key: string, account: string, amount: number): Deposit & KeyColumns => ({
  ...toKeyColumns({ scope: "test POST /deposits", key, requestHash: digestJson({ account, amount }) }),
  account,
  amount,
  event_id: `00000000-0000-7000-8000-${String(ids++).padStart(12, "0")}`,
});

const summary = async (db: Db, requests: readonly (Deposit & KeyColumns)[]) =>
  (await deposit.run(db, requests)).map((each) =>
    "body" in each && each.body ? `${each.result} ${each.body}` : each.result,
  );

test("a batch executes new requests, replays known ones and refuses others, in input order", async () => {
  await using t = await setup();
  expect(await summary(t.db, [request("a", "x", 10)])).toEqual(["first 10"]);
  const batch = [request("b", "x", 5), request("a", "x", 10), request("a-other", "y", 500), request("c", "z", 60)];
  expect(await summary(t.db, batch)).toEqual(["first 15", "replayed 10", "too_much", "first 60"]);
  expect(await deposit.run(t.db, [request("d", "x", 101)])).toMatchObject([{ result: "too_much", detail: "15" }]);
  const [conflict] = await deposit.run(t.db, [request("a", "x", 11)]);
  expect(conflict?.result).toBe("conflict");
  const { rows } = await t.db.query(`select account, balance from accounts order by account`);
  expect(rows).toEqual([
    { account: "x", balance: 15 },
    { account: "z", balance: 60 },
  ]);
});

test("every change appends an event in input order, and a replay or refusal appends none", async () => {
  await using t = await setup();
  await deposit.run(t.db, [request("a", "x", 10), request("b", "y", 60)]);
  await deposit.run(t.db, [request("a", "x", 10), request("c", "x", 500), request("d", "z", 1)]);
  const { rows } = await t.db.query(
    `select aggregate_key, version::int, subject, payload - 'event_id' - 'occurred_at' as payload
       from outbox_events order by position`,
  );
  const common = { version: 1, subject: "bank.events" };
  const payload = { event_type: "Deposited", version: "1" };
  expect(rows).toEqual([
    { ...common, aggregate_key: "x", payload: { ...payload, amount: 10 } },
    { ...common, aggregate_key: "y", payload: { ...payload, amount: 60, large: true } },
    { ...common, aggregate_key: "z", payload: { ...payload, amount: 1 } },
  ]);
});

test("an expired key is executed again and its new response is stored", async () => {
  await using t = await setup();
  await deposit.run(t.db, [request("a", "x", 10)]);
  await t.db.query(`update idempotency_keys set expires_at = now() - interval '1 s'`);
  expect(await summary(t.db, [request("a", "x", 7)])).toEqual(["first 17"]);
  expect(await summary(t.db, [request("a", "x", 7)])).toEqual(["replayed 17"]);
});

test("a key that another process commits first fails the whole batch", async () => {
  await using t = await setup();
  const other = await t.open().connect();
  await other.query("begin");
  await other.query(deposit.sql, [JSON.stringify([request("a", "y", 1)])]);
  const late = deposit.run(t.db, [request("a", "x", 1), request("b", "z", 1)]);
  late.catch(() => {});
  await other.query("commit");
  other.release();
  const result = await late.then(
    (results) => results.map((each) => each.result),
    (error) => (error as { code?: string }).code,
  );
  // The unique index failed it, or it began after the commit and found the key.
  expect([["conflict", "first"], "23505"]).toContainEqual(result);
  const { rows } = await t.db.query(`select account from accounts order by account`);
  expect(rows.map(({ account }) => account)).toEqual(result === "23505" ? ["y"] : ["y", "z"]);
});

test("keys are found by index probes on an empty table, a full one and stale statistics", async () => {
  await using t = await setup();
  const filled = (from: number) => `
    insert into idempotency_keys (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
    select 's' || i % 10, 'k' || i, sha256(''), 200, '', '', now() + interval '1 d'
      from generate_series(${from}, ${from + 9_999}) i`;
  for (const state of ["", "analyze", filled(1), "analyze", filled(20_000)]) {
    await t.db.query(state);
    const plan = await genericPlan(t.db, deposit.sql);
    expect(plan, `after ${state}`).not.toMatch(/Seq Scan on (idempotency_keys|accounts)|Bitmap/);
    expect(plan, `after ${state}`).toMatch(
      /Index Scan using idempotency_keys_pkey on idempotency_keys k .*\n\s*Index Cond: \(\(scope = r/,
    );
  }
});

test("a key is kept for 24 hours, or as long as the pool says", async () => {
  await using t = await setup();
  const hours = async () =>
    (
      await t.db.query(
        `select extract(epoch from max(expires_at) - now())::float8 / 3600 as left from idempotency_keys`,
      )
    ).rows[0].left;
  await deposit.run(t.db, [request("k1", "a", 1)]);
  expect(await hours()).toBeCloseTo(24, 1);
  await deposit.run(t.open({ idempotencyMs: 48 * 3_600_000 }), [request("k2", "a", 1)]);
  expect(await hours()).toBeCloseTo(48, 1);
});
