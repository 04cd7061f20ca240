/** What the sender tells of its work, for metrics and the log. */
import type { End } from "./ends.ts";

/** What is told of an order beside its end. */
interface Ended {
  readonly idempotencyKey: string;
  readonly attempts: number;
}

export interface Tell {
  /** What became of an order is in the database. Told once of every step, by who took it. */
  ended(order: Ended, end: Pick<End, "to" | "code">): void;
  /** The broker was sent an order, or asked about one; `startedAt` is a reading of performance.now(). */
  called(what: "send" | "find" | "cancel", kind: string, startedAt: number): void;
  /** An order was let go to the broker so long after it was accepted. */
  departed(ageMs: number): void;
}

export const tellNobody: Tell = { ended() {}, called() {}, departed() {} };
