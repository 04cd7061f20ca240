/** Writes events beside the state that they tell of. */
import { afterCommit, type Tx } from "../db/index.ts";
import { traceHeaders } from "../telemetry/index.ts";
import type { Wakeups } from "../worker/index.ts";
import { eventRows, insertEventRowsSql, type NewEvent } from "./insert-events-sql.ts";

export interface Outbox {
  /**
   * Writes the events in the order given. Change the aggregate's state first: its row lock is what makes the order of
   * the events the order of the versions.
   */
  append(tx: Tx, ...events: readonly NewEvent[]): Promise<void>;
}

export interface OutboxOptions {
  /** With these, the relay hears of the events as soon as they have committed. */
  readonly wakeups?: Wakeups;
  readonly topic?: string;
}

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
