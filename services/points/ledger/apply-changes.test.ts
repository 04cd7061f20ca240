import { randomUUIDv7 } from "node:crypto";
import { Problem } from "@todoke/kernel/problem";
import fc from "fast-check";
import { expect, test } from "vitest";
import { pointsMax, type Time } from "./account.ts";
import { applyChanges } from "./apply-changes.ts";
import type { Applied, Change, Result } from "./changes.ts";
import { Coins, Tables } from "./testing.ts";

const user = "u_1";
const start = Date.parse("2026-01-15T00:00:00.000Z");
const time = (second: number): Time => new Date(start + second * 1_000).toISOString();

const amount = fc.integer({ min: 1, max: 12 });
const part = fc.option(amount, { nil: undefined });
const which = fc.nat({ max: 30 });
const operation = fc.oneof(
  fc.record({
    op: fc.constantFrom("ADD" as const, "GRANT" as const),
    amount,
    lasts: fc.option(fc.integer({ min: 1, max: 20 })),
  }),
  fc.record({ op: fc.constant("SUB" as const), amount }),
  fc.record({ op: fc.constant("HOLD" as const), amount, ttlSeconds: fc.integer({ min: 1, max: 15 }) }),
  fc.record({ op: fc.constant("CAPTURE" as const), which, part }),
  fc.record({ op: fc.constant("RELEASE" as const), which }),
  fc.record({ op: fc.constant("REFUND" as const), which, part }),
);
const batch = fc.record({ wait: fc.nat({ max: 8 }), operations: fc.array(operation, { minLength: 1, maxLength: 4 }) });
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** The real rules and the coins, side by side. */
class Ledger {
  readonly tables = new Tables();
  readonly coins = new Coins();
  #second = 0;
  readonly #ids: string[] = [];

  /** Carries out the operations in one batch, some seconds after those before. */
  run({ wait, operations }: { readonly wait: number; readonly operations: readonly Operation[] }): void {
    this.#second += wait;
    const batch = operations.map((each) => this.#ask(each));
    const at = time(this.#second);
    const { results, rows } = applyChanges(
      [this.tables.account(user, at)],
      batch.map(({ change }) => change),
    );
    this.coins.passTo(at);
    for (const [place, { expected }] of batch.entries()) {
      expect(results[place] instanceof Problem).toBe(!expected());
      this.coins.passTo(at);
    }
    this.tables.write(rows);
    this.#check(results);
  }

  #ask(operation: Operation): { change: Change; expected: () => boolean } {
    const id = randomUUIDv7();
    const asked = { id, idempotencyKey: `key ${id}` };
    const name = "which" in operation ? (this.#ids[operation.which % (this.#ids.length || 1)] ?? id) : id;
    this.#ids.push(id);
    switch (operation.op) {
      case "ADD":
      case "GRANT": {
        const expiresAt = operation.lasts === null ? null : time(this.#second + operation.lasts);
        const change = { ...asked, kind: operation.op, userId: user, amount: BigInt(operation.amount), expiresAt };
        return { change, expected: () => this.coins.grant(id, operation.amount, expiresAt) };
      }
      case "SUB": {
        const change = { ...asked, kind: "SUB", userId: user, amount: BigInt(operation.amount) } as const;
        return { change, expected: () => this.coins.take(id, operation.amount, "spent") };
      }
      case "HOLD": {
        const { ttlSeconds } = operation;
        const change = { ...asked, kind: "HOLD", userId: user, amount: BigInt(operation.amount), ttlSeconds } as const;
        return { change, expected: () => this.coins.hold(id, operation.amount, time(this.#second + ttlSeconds)) };
      }
      case "CAPTURE": {
        const part = operation.part === undefined ? undefined : BigInt(operation.part);
        const change = { ...asked, kind: "CAPTURE", holdId: name, amount: part } as const;
        return { change, expected: () => this.coins.endHold(name, operation.part) };
      }
      case "RELEASE":
        return { change: { ...asked, kind: "RELEASE", holdId: name }, expected: () => this.coins.endHold(name, 0) };
      case "REFUND": {
        const part = operation.part === undefined ? undefined : BigInt(operation.part);
        const change = { ...asked, kind: "REFUND", transactionId: name, amount: part } as const;
        return { change, expected: () => this.#refunds(name, operation.part) };
      }
    }
  }

  /** A captured hold is refunded by the name of its capture; only what was written before this batch can be named. */
  #refunds(name: string, amount: number | undefined): boolean {
    const spent = this.tables.transactions.find((each) => each.id === name);
    if (spent?.kind === "SUB") return this.coins.giveBack(name, amount);
    return spent?.kind === "CAPTURE" && this.coins.giveBack(spent.refersTo ?? "", amount);
  }

  /** What holds after everything. */
  #check(results: readonly Result[]): void {
    const { transactions, lots, holds } = this.tables;
    const { balance, held, version } = this.tables.account(user, time(this.#second));
    const sum = (amounts: readonly bigint[]) => amounts.reduce((total, each) => total + each, 0n);
    const moved = (...kinds: string[]) => sum(transactions.filter((t) => kinds.includes(t.kind)).map((t) => t.moved));
    expect(balance).toBe(this.coins.count("user"));
    expect(held).toBe(this.coins.count("held"));
    expect(moved("SUB", "CAPTURE") - moved("REFUND")).toBe(this.coins.count("spent"));
    expect(moved("EXPIRE")).toBe(this.coins.count("expired"));
    expect(moved("ADD", "GRANT") - this.coins.count("spent") - this.coins.count("expired")).toBe(balance + held);
    expect(sum(transactions.map((each) => each.pointAmount))).toBe(balance);
    expect(sum([...lots.values()].map((lot) => lot.remaining))).toBe(balance);
    for (const { lotId, remaining } of lots.values()) expect(remaining).toBe(this.coins.count("user", lotId));
    expect(sum([...holds.values()].filter((hold) => hold.status === "HELD").map((hold) => hold.amount))).toBe(held);
    expect(transactions.map((each) => each.version)).toEqual(transactions.map((_, place) => BigInt(place + 1)));
    expect(version).toBe(BigInt(transactions.length));
    expect(transactions.every((each) => each.balanceAfter >= 0n && each.heldAfter >= 0n && each.moved > 0n)).toBe(true);
    expect(new Set(transactions.map((each) => each.idempotencyKey)).size).toBe(transactions.length);
    const last = results.findLast((each): each is Applied => !(each instanceof Problem));
    if (last) expect([last.balance, last.held]).toEqual([balance, held]);
  }
}

test("whatever is added, spent, held, captured, released, refunded and runs out, every point is where it should be", () => {
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 30 }), (batches) => {
      const ledger = new Ledger();
      for (const each of batches) ledger.run(each);
    }),
    { numRuns: 2_000 },
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
const empty = { ...base, lotsLeftOut: false };
const add = (id: string, points: bigint) =>
  ({ kind: "ADD", id, idempotencyKey: id, userId: user, amount: points, expiresAt: null }) as const;

test("2^63 - 1 points are counted, and one more is refused", () => {
  const { results, rows } = applyChanges([empty], [add("a", pointsMax), add("b", 1n)]);
  expect(results[0]).toMatchObject({ balance: pointsMax });
  expect(results[1]).toMatchObject({ code: "balance-overflow" });
  expect(rows.transactions.length).toBe(1);
});

test("held points count towards what a user can have", () => {
  const hold = { kind: "HOLD", id: "h", idempotencyKey: "h", userId: user, amount: pointsMax, ttlSeconds: 1 } as const;
  const { results } = applyChanges([empty], [add("a", pointsMax), hold, add("b", 1n)]);
  expect(results[2]).toMatchObject({ code: "balance-overflow" });
});

test("a grant that was promised is booked though it has run out, and its end right after it", () => {
  const late = { ...add("a", 5n), kind: "GRANT", expiresAt: time(-1) } as const;
  const { results, rows } = applyChanges([empty], [late, { ...late, kind: "ADD", id: "b", idempotencyKey: "b" }]);
  expect(rows.transactions.map(({ kind, balanceAfter }) => [kind, balanceAfter])).toEqual([
    ["GRANT", 5n],
    ["EXPIRE", 0n],
  ]);
  expect(results[1]).toMatchObject({ code: "lot-end-in-the-past" });
});

test("whoever was never granted anything has nothing to spend", () => {
  const spend = { kind: "SUB", id: "s", idempotencyKey: "s", userId: "nobody", amount: 1n } as const;
  expect(applyChanges([], [spend]).results[0]).toMatchObject({ code: "insufficient-points" });
});
