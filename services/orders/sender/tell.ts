/** What the sender tells of its work, for metrics and the log. */
import type { End } from "./ends.ts";
import type { HeldOrder } from "./store.ts";

export interface Tell {
  /** What became of an order is in the database. */
  ended(order: HeldOrder, end: End): void;
  /** The broker was sent an order, or asked about one; `startedAt` is a reading of performance.now(). */
  called(what: "send" | "find" | "cancel", kind: string, startedAt: number): void;
  /** An order was let go to the broker so long after it was accepted. */
  departed(ageMs: number): void;
}

export const tellNobody: Tell = { ended() {}, called() {}, departed() {} };
