/** Appends events in the transaction that changes the state. */
import { afterCommit, type Tx } from "../db/index.ts";
import { traceHeaders } from "../telemetry/index.ts";
import type { Wakeups } from "../worker/index.ts";
import { eventRows, insertEventRowsSql, type NewEvent } from "./insert-events-sql.ts";

export interface Outbox {
  /**
   * Inserts the events in the given order. Change the aggregate first: its row lock makes the order of the events the
   * order of the versions.
   */
  append(tx: Tx, ...events: readonly NewEvent[]): Promise<void>;
}

export interface OutboxOptions {
  /** With `wakeups` and `topic`, the relay is woken after the commit. */
  readonly wakeups?: Wakeups;
  readonly topic?: string;
}

/** Opens the outbox for transactions of several statements. One-statement commands use `insertEventsSql`. */
export function openOutbox({ wakeups, topic }: OutboxOptions = {}): Outbox {
  return {
    async append(tx, ...events) {
      if (events.length === 0) return;
      await tx.query({ name: "outbox append", text: appendSql, values: [eventRows(events, traceHeaders())] });
      if (wakeups && topic) afterCommit(tx, () => wakeups.signal(topic));
    },
  };
}

const appendSql = insertEventRowsSql("$1");
