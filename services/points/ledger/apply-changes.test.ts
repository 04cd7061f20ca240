import { Problem } from "@todoke/kernel/problem";
import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { pointsMax, type Time } from "./account.ts";
import { applyChanges } from "./apply-changes.ts";
import type { Applied } from "./changes.ts";
import { type Batch, Play, plays } from "./testing/play.ts";
import { Tables } from "./testing.ts";

const user = "u_1";
const start = Date.parse("2026-01-15T00:00:00.000Z");
const time = (second: number): Time => new Date(start + second * 1_000).toISOString();

/** The rules and the model, side by side. */
class Ledger {
  readonly tables = new Tables();
  readonly play = new Play(["u_1", "u_2", "u_3"], {
    expiresAt: (units) => time(this.play.units + units),
    ttlSeconds: (units) => units,
    modelTime: time,
    modelEnd: time,
  });

  /** Applies a batch, `wait` seconds after the previous one. */
  async run(batch: Batch): Promise<void> {
    this.play.units += batch.wait;
    const at = time(this.play.units);
    const last = new Map<string, Applied>();
    const [done, expected] = await this.play.check(batch, async (changes) => {
      const { results, rows } = applyChanges(
        this.play.users.map((each) => this.tables.account(each, at)),
        changes,
      );
      this.tables.write(rows);
      for (const each of results) if (!(each instanceof Problem)) last.set(each.transaction.userId, each);
      return results.map((each) => !(each instanceof Problem));
    });
    expect(done).toEqual(expected);
    for (const each of this.play.users) this.#check(each, last.get(each));
  }

  /** The invariants after every batch. */
  #check(userId: string, last: Applied | undefined): void {
    const coins = this.play.coinsOf(userId);
    const { balance, held, version, lots, holds } = this.tables.account(userId, time(this.play.units));
    const transactions = this.tables.transactions.filter((each) => each.userId === userId);
    const sum = (amounts: readonly bigint[]) => amounts.reduce((total, each) => total + each, 0n);
    const moved = (...kinds: string[]) => sum(transactions.filter((t) => kinds.includes(t.kind)).map((t) => t.moved));
    expect(balance).toBe(coins.count("user"));
    expect(held).toBe(coins.count("held"));
    expect(moved("SUB", "CAPTURE") - moved("REFUND")).toBe(coins.count("spent"));
    expect(moved("EXPIRE")).toBe(coins.count("expired"));
    expect(moved("ADD", "GRANT") - coins.count("spent") - coins.count("expired")).toBe(balance + held);
    expect(sum(transactions.map((each) => each.pointAmount))).toBe(balance);
    expect(sum(lots.map((lot) => lot.remaining))).toBe(balance);
    for (const { lotId, remaining } of lots) expect(remaining).toBe(coins.count("user", lotId));
    expect(sum(holds.filter((hold) => hold.status === "HELD").map((hold) => hold.amount))).toBe(held);
    expect(transactions.map((each) => each.version)).toEqual(transactions.map((_, index) => BigInt(index + 1)));
    expect(version).toBe(BigInt(transactions.length));
    expect(transactions.every((each) => each.balanceAfter >= 0n && each.heldAfter >= 0n && each.moved > 0n)).toBe(true);
    expect(new Set(transactions.map((each) => each.idempotencyKey)).size).toBe(transactions.length);
    if (last) expect([last.balance, last.held]).toEqual([balance, held]);
  }
}

test("random changes leave every point where the model has it", async () => {
  await fc.assert(
    fc.asyncProperty(plays(30), async (batches) => {
      const ledger = new Ledger();
      for (const each of batches) await ledger.run(each);
    }),
    { numRuns: repetitions(1_500) },
  );
});

const base = {
  userId: user,
  balance: 0n,
  held: 0n,
  version: 0n,
  at: time(0),
  lots: [],
  holds: [],
  uses: [],
  referred: [],
};
const empty = { ...base, hasMoreLots: false };
const add = (id: string, points: bigint) =>
  ({ kind: "ADD", id, idempotencyKey: id, userId: user, amount: points, expiresAt: null }) as const;

test("a balance of 2^63 - 1 is allowed, and one point more is refused", () => {
  const { results, rows } = applyChanges([empty], [add("a", pointsMax), add("b", 1n)]);
  expect(results[0]).toMatchObject({ balance: pointsMax });
  expect(results[1]).toMatchObject({ code: "balance-overflow" });
  expect(rows.transactions.length).toBe(1);
});

test("held points count towards the maximum", () => {
  const hold = { kind: "HOLD", id: "h", idempotencyKey: "h", userId: user, amount: pointsMax, ttlSeconds: 1 } as const;
  const { results } = applyChanges([empty], [add("a", pointsMax), hold, add("b", 1n)]);
  expect(results[2]).toMatchObject({ code: "balance-overflow" });
});

test("a refund that would exceed the maximum is refused", () => {
  const spend = { kind: "SUB", id: "s", idempotencyKey: "s", userId: user, amount: 5n } as const;
  const tables = new Tables();
  tables.write(applyChanges([empty], [add("a", 5n), spend, add("b", pointsMax)]).rows);
  const refund = { kind: "REFUND", id: "r", idempotencyKey: "r", transactionId: "s" } as const;
  const { results, rows } = applyChanges([tables.account(user, time(0))], [refund]);
  expect(results[0]).toMatchObject({ code: "balance-overflow" });
  expect(rows.transactions).toEqual([]);
});

test("a GRANT that has expired is posted with its expiry, an expired ADD is refused", () => {
  const late = { ...add("a", 5n), kind: "GRANT", expiresAt: time(-1) } as const;
  const { results, rows } = applyChanges([empty], [late, { ...late, kind: "ADD", id: "b", idempotencyKey: "b" }]);
  expect(rows.transactions.map(({ kind, balanceAfter }) => [kind, balanceAfter])).toEqual([
    ["GRANT", 5n],
    ["EXPIRE", 0n],
  ]);
  expect(results[1]).toMatchObject({ code: "lot-end-in-the-past" });
});

test("a user without an account cannot spend", () => {
  const spend = { kind: "SUB", id: "s", idempotencyKey: "s", userId: "unknown", amount: 1n } as const;
  expect(applyChanges([], [spend]).results[0]).toMatchObject({ code: "insufficient-points" });
});
