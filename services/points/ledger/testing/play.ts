/**
 * Random changes of several users, in batches, over time, with the results that the model (../testing.ts) expects. Used for the
 * rules in memory (apply-changes.test.ts) and in the database (commands/random-play.test.ts).
 */
import { randomUUIDv7 } from "node:crypto";
import fc from "fast-check";
import type { Time } from "../account.ts";
import type { Change } from "../changes.ts";
import { Coins } from "../testing.ts";

const amount = fc.integer({ min: 1, max: 12 });
const taken = fc.integer({ min: 1, max: 8 });
const part = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined });
const which = fc.nat({ max: 9 });
const user = fc.constantFrom(0, 0, 1, 2);
const lasts = fc.option(fc.integer({ min: 1, max: 20 }));
/** Weighted so that most operations succeed. */
const operation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constantFrom("ADD" as const, "GRANT" as const), user, amount, lasts }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("SUB" as const), user, amount: taken }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("HOLD" as const),
      user,
      amount: taken,
      lasts: fc.integer({ min: 1, max: 15 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("CAPTURE" as const), which, part }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("RELEASE" as const), which }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("REFUND" as const), which, part }) },
);
const batch = fc.record({ wait: fc.nat({ max: 8 }), operations: fc.array(operation, { minLength: 1, maxLength: 6 }) });
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** Batches, each with the units of time that pass before it. */
export const plays = (batchesMax: number) => fc.array(batch, { maxLength: batchesMax });
export type Batch = typeof batch extends fc.Arbitrary<infer Value> ? Value : never;

/** Converts units of time for the ledger and for the model. */
export interface Clock {
  /** `units` after the current time. */
  readonly expiresAt: (units: number) => Time;
  readonly ttlSeconds: (units: number) => number;
  /** `units` after the start, for the model: the current time, and the end of a lot or hold. */
  readonly modelTime: (units: number) => Time;
  readonly modelEnd: (units: number) => Time;
}

export interface PlannedChange {
  readonly change: Change;
  /** Applies the change to the model. Returns false if the model refuses it. */
  readonly applyToModel: () => boolean;
}

export class Play {
  readonly users: readonly string[];
  readonly #clock: Clock;
  readonly #coins: ReadonlyMap<string, Coins>;
  /** By id. */
  readonly #planned = new Map<string, { readonly userId: string; readonly change: Change }>();
  /** Applied in previous batches: only these can be refunded. */
  readonly #done = new Set<string>();
  units = 0;

  constructor(users: readonly string[], clock: Clock) {
    this.users = users;
    this.#clock = clock;
    this.#coins = new Map(users.map((each) => [each, new Coins()]));
  }

  /** Applies a batch to the model and by `run`. Returns which changes each of them applied. */
  async check(
    { operations }: Batch,
    run: (changes: readonly Change[]) => Promise<readonly boolean[]>,
  ): Promise<boolean[][]> {
    const planned = operations.map((each) => this.#plan(each));
    const done = await run(planned.map(({ change }) => change));
    this.#advanceModel();
    const expected = planned.map((each) => {
      const isDone = each.applyToModel();
      this.#advanceModel();
      return isDone;
    });
    for (const [index, { change }] of planned.entries()) if (expected[index]) this.#done.add(change.id);
    return [[...done], expected];
  }

  coinsOf(userId: string): Coins {
    return this.#coins.get(userId) as Coins;
  }

  #advanceModel(): void {
    const { modelTime } = this.#clock;
    for (const coins of this.#coins.values()) coins.advanceTo(modelTime(this.units));
  }

  #plan(operation: Operation): PlannedChange {
    const id = randomUUIDv7();
    const ids = { id, idempotencyKey: `key ${id}` };
    const target = "which" in operation ? (this.#chooseTarget(operation) ?? id) : id;
    const targeted = this.#planned.get(target);
    const userId = "user" in operation ? (this.users[operation.user] as string) : (targeted?.userId ?? "");
    const planned = this.#toChange(operation, { ids, target, userId });
    this.#planned.set(id, { userId, change: planned.change });
    return planned;
  }

  /** One of the last few that fit, or sometimes any. */
  #chooseTarget({ op, which }: Extract<Operation, { which: number }>): string | undefined {
    const kinds = op === "REFUND" ? ["SUB", "CAPTURE"] : ["HOLD"];
    const ids = [...this.#planned].flatMap(([id, { change }]) =>
      which === 0 || kinds.includes(change.kind) ? [id] : [],
    );
    return ids.at(-1 - (which % (ids.length || 1)));
  }

  #toChange(
    operation: Operation,
    { ids, target, userId }: { ids: Ids; target: string; userId: string },
  ): PlannedChange {
    const { expiresAt, ttlSeconds, modelEnd } = this.#clock;
    const coins = this.#coins.get(userId) ?? new Coins();
    const { id } = ids;
    switch (operation.op) {
      case "ADD":
      case "GRANT": {
        const { amount, lasts, op } = operation;
        const ends = lasts === null ? null : expiresAt(lasts);
        const change = { ...ids, kind: op, userId, amount: BigInt(amount), expiresAt: ends };
        const modelEnds = lasts === null ? null : modelEnd(this.units + lasts);
        return { change, applyToModel: () => coins.grant(id, amount, modelEnds) };
      }
      case "SUB": {
        const change = { ...ids, kind: "SUB", userId, amount: BigInt(operation.amount) } as const;
        return { change, applyToModel: () => coins.take(id, operation.amount, "spent") };
      }
      case "HOLD": {
        const { amount, lasts } = operation;
        const ends = modelEnd(this.units + lasts);
        const taking = { userId, amount: BigInt(amount), ttlSeconds: ttlSeconds(lasts) };
        return { change: { ...ids, kind: "HOLD", ...taking }, applyToModel: () => coins.hold(id, amount, ends) };
      }
      case "CAPTURE": {
        const change = { ...ids, kind: "CAPTURE", holdId: target, amount: toBigInt(operation.part) } as const;
        return { change, applyToModel: () => coins.endHold(target, operation.part) };
      }
      case "RELEASE":
        return { change: { ...ids, kind: "RELEASE", holdId: target }, applyToModel: () => coins.endHold(target, 0) };
      case "REFUND": {
        const change = { ...ids, kind: "REFUND", transactionId: target, amount: toBigInt(operation.part) } as const;
        const takenBy = this.#takenBy(target);
        return { change, applyToModel: () => takenBy !== undefined && coins.refund(takenBy, operation.part) };
      }
    }
  }

  /** The model knows a capture by its hold. */
  #takenBy(id: string): string | undefined {
    const change = this.#done.has(id) ? this.#planned.get(id)?.change : undefined;
    if (change?.kind === "SUB") return id;
    return change?.kind === "CAPTURE" ? change.holdId : undefined;
  }
}

interface Ids {
  readonly id: string;
  readonly idempotencyKey: string;
}

const toBigInt = (amount: number | undefined): bigint | undefined =>
  amount === undefined ? undefined : BigInt(amount);
