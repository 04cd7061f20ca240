/** Writes events beside the state that they tell of. */
import { randomUUIDv7 } from "node:crypto";
import { afterCommit, type Tx } from "../db/index.ts";
import { traceHeaders } from "../telemetry/index.ts";
import type { Wakeups } from "../worker/index.ts";
import { insertEvents } from "./store.ts";

export interface NewEvent {
  /** UUID v7; made here if not given. */
  readonly eventId?: string;
  readonly eventType: string;
  readonly subject: string;
  readonly aggregateKey: string;
  /** The aggregate's, after the change. */
  readonly version: bigint | number;
  /** JSON; 64-bit numbers as strings. */
  readonly payload: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** RFC 3339; the transaction's time if not given. */
  readonly occurredAt?: string;
}

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
      const trace = traceHeaders();
      await insertEvents(
        tx,
        events.map((event) => ({
          event_id: event.eventId ?? randomUUIDv7(),
          event_type: event.eventType,
          subject: event.subject,
          aggregate_key: event.aggregateKey,
          version: event.version.toString(),
          payload: event.payload,
          headers: { ...trace, ...event.headers },
          occurred_at: event.occurredAt ?? null,
        })),
      );
      if (wakeups && topic) afterCommit(tx, () => wakeups.signal(topic));
    },
  };
}
