/**
 * Cancels all tickets of some users as part of a PostgreSQL transaction.
 *
 * A script removes them from the queue and appends their ends to the stream; the transaction records the same ends. After the
 * commit PostgreSQL has them, even if Redis loses data, and the recorder finds duplicates and acks them. If the transaction
 * rolls back, the recorder records them, and the next transaction finds no waiting tickets.
 */
import { afterCommit } from "@todoke/kernel/db";
import type { TicketQueue } from "../index.ts";
import { recordEnds } from "../record-ends.ts";
import { keysFor } from "./prelude.ts";
import { defaultKeyPrefix } from "./record-entries.ts";
import type { RedisQueueOptions } from "./redis-queue.ts";
import { cancelUserTickets } from "./scripts.ts";
import { parseEntry, type RawEntry } from "./ticket-record.ts";

// Users per script, which blocks Redis for some milliseconds.
const usersMax = 100;

export function cancelForUsers(options: RedisQueueOptions): TicketQueue["cancelForUsers"] {
  const { link, outbox, keyPrefix = defaultKeyPrefix, onRecorded, onEnded } = options;
  return async (tx, { userIds, modes }) => {
    for (const mode of modes) {
      for (let first = 0; first < userIds.length; first += usersMax) {
        const some = userIds.slice(first, first + usersMax);
        const raw = await link.run(cancelUserTickets, { keys: keysFor(keyPrefix, mode), arguments: some });
        const ends = (raw as RawEntry[]).map((entry) => parseEntry(mode, entry).end);
        if (ends.length === 0) continue;
        const recorded = await recordEnds(tx, ends, { outbox });
        afterCommit(tx, () => {
          onRecorded?.(recorded);
          onEnded(mode);
        });
      }
    }
  };
}
