/**
 * Random play: what callers may ask for, in batches cut anywhere, of several users, at any time; and what the coins say must
 * become of it. The rules are held to it in memory (apply-changes.test.ts), and the tables too (store/play.test.ts).
 */
import { randomUUIDv7 } from "node:crypto";
import fc from "fast-check";
import type { Time } from "./account.ts";
import type { Change } from "./changes.ts";
import { Coins } from "./testing.ts";

const amount = fc.integer({ min: 1, max: 12 });
const taken = fc.integer({ min: 1, max: 8 });
const part = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined });
const which = fc.nat({ max: 9 });
const user = fc.constantFrom(0, 0, 1, 2);
const lasts = fc.option(fc.integer({ min: 1, max: 20 }));
/** Mostly what can be done: users have several lots, holds are captured while they last, and captures refunded. */
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

/** Batches, and how many units of time go by before each. */
export const plays = (batchesMax: number) => fc.array(batch, { maxLength: batchesMax });
export type Batch = typeof batch extends fc.Arbitrary<infer Value> ? Value : never;

/** How units of time are told to the ledger, and to the coins. */
export interface Clock {
  /** So many units after the present of the play. */
  readonly expiresAt: (units: number) => Time;
  readonly ttlSeconds: (units: number) => number;
  /** The same for the coins, so many units after the play began: the present, and when something ends. */
  readonly modelTime: (units: number) => Time;
  readonly modelEnd: (units: number) => Time;
}

export interface Asked {
  readonly change: Change;
  /** Does it to the coins, and says whether it can be done. */
  readonly expected: () => boolean;
}

export class Play {
  readonly users: readonly string[];
  readonly #clock: Clock;
  readonly #coins: ReadonlyMap<string, Coins>;
  /** Whose it is, and which hold a capture was of. */
  readonly #asked = new Map<string, { readonly userId: string; readonly change: Change }>();
  /** Done in batches before: only they can be named by a refund. */
  readonly #done = new Set<string>();
  units = 0;

  constructor(users: readonly string[], clock: Clock) {
    this.users = users;
    this.#clock = clock;
    this.#coins = new Map(users.map((each) => [each, new Coins()]));
  }

  /** Carries out a batch on the coins and by `run`, which says of each change whether it was done. */
  async check(
    { operations }: Batch,
    run: (changes: readonly Change[]) => Promise<readonly boolean[]>,
  ): Promise<boolean[][]> {
    const asked = operations.map((each) => this.#ask(each));
    const done = await run(asked.map(({ change }) => change));
    this.#letTimePass();
    const expected = asked.map((each) => {
      const isDone = each.expected();
      this.#letTimePass();
      return isDone;
    });
    for (const [place, { change }] of asked.entries()) if (expected[place]) this.#done.add(change.id);
    return [[...done], expected];
  }

  coinsOf(userId: string): Coins {
    return this.#coins.get(userId) as Coins;
  }

  #letTimePass(): void {
    const { modelTime } = this.#clock;
    for (const coins of this.#coins.values()) coins.passTo(modelTime(this.units));
  }

  #ask(operation: Operation): Asked {
    const id = randomUUIDv7();
    const asked = { id, idempotencyKey: `key ${id}` };
    const name = "which" in operation ? (this.#nameFor(operation) ?? id) : id;
    const named = this.#asked.get(name);
    const userId = "user" in operation ? (this.users[operation.user] as string) : (named?.userId ?? "");
    const played = this.#playOf(operation, { asked, name, userId });
    this.#asked.set(id, { userId, change: played.change });
    return played;
  }

  /** One of the last few that it can be about; now and then just anything. */
  #nameFor({ op, which }: Extract<Operation, { which: number }>): string | undefined {
    const kinds = op === "REFUND" ? ["SUB", "CAPTURE"] : ["HOLD"];
    const ids = [...this.#asked].flatMap(([id, { change }]) =>
      which === 0 || kinds.includes(change.kind) ? [id] : [],
    );
    return ids.at(-1 - (which % (ids.length || 1)));
  }

  #playOf(operation: Operation, { asked, name, userId }: { asked: Named; name: string; userId: string }): Asked {
    const { expiresAt, ttlSeconds, modelEnd } = this.#clock;
    const coins = this.#coins.get(userId) ?? new Coins();
    const { id } = asked;
    switch (operation.op) {
      case "ADD":
      case "GRANT": {
        const { amount, lasts, op } = operation;
        const ends = lasts === null ? null : expiresAt(lasts);
        const change = { ...asked, kind: op, userId, amount: BigInt(amount), expiresAt: ends };
        const modelEnds = lasts === null ? null : modelEnd(this.units + lasts);
        return { change, expected: () => coins.grant(id, amount, modelEnds) };
      }
      case "SUB": {
        const change = { ...asked, kind: "SUB", userId, amount: BigInt(operation.amount) } as const;
        return { change, expected: () => coins.take(id, operation.amount, "spent") };
      }
      case "HOLD": {
        const { amount, lasts } = operation;
        const ends = modelEnd(this.units + lasts);
        const taking = { userId, amount: BigInt(amount), ttlSeconds: ttlSeconds(lasts) };
        return { change: { ...asked, kind: "HOLD", ...taking }, expected: () => coins.hold(id, amount, ends) };
      }
      case "CAPTURE": {
        const change = { ...asked, kind: "CAPTURE", holdId: name, amount: whole(operation.part) } as const;
        return { change, expected: () => coins.endHold(name, operation.part) };
      }
      case "RELEASE":
        return { change: { ...asked, kind: "RELEASE", holdId: name }, expected: () => coins.endHold(name, 0) };
      case "REFUND": {
        const change = { ...asked, kind: "REFUND", transactionId: name, amount: whole(operation.part) } as const;
        const takenBy = this.#takenBy(name);
        return { change, expected: () => takenBy !== undefined && coins.giveBack(takenBy, operation.part) };
      }
    }
  }

  /** A captured hold is refunded by the name of its capture. */
  #takenBy(name: string): string | undefined {
    const change = this.#done.has(name) ? this.#asked.get(name)?.change : undefined;
    if (change?.kind === "SUB") return name;
    return change?.kind === "CAPTURE" ? change.holdId : undefined;
  }
}

interface Named {
  readonly id: string;
  readonly idempotencyKey: string;
}

const whole = (amount: number | undefined): bigint | undefined => (amount === undefined ? undefined : BigInt(amount));
