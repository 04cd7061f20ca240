/**
 * How all tickets of some users are cancelled, as part of a transaction of PostgreSQL.
 *
 * A script takes them out of the queue and writes their ends to the stream; the transaction puts the same ends on record. So
 * when it has committed PostgreSQL has them, whatever Redis forgets from then on, and the recorder finds them known and strikes
 * them off. A transaction that does not commit leaves them to the recorder; the next one finds nothing that waits.
 */
import { afterCommit } from "@todoke/kernel/db";
import { type Recorded, recordEnds } from "../../store/ends.ts";
import type { TicketQueue } from "../index.ts";
import { entryOf, type RawEntry } from "./kept.ts";
import { defaultPlace } from "./record.ts";
import type { RedisQueueOptions } from "./redis.ts";
import { cancelTicketsOf } from "./scripts.ts";
import { keysOf } from "./words.ts";

/** By one script, which holds everybody up while it runs: some milliseconds. */
const usersAtOnceMax = 100;

export function cancelAllOf(options: RedisQueueOptions): TicketQueue["cancelAllOf"] {
  const { link, outbox, place = defaultPlace, onRecorded, onEnded } = options;
  return async (tx, { userIds, modes }) => {
    for (const mode of modes) {
      for (let first = 0; first < userIds.length; first += usersAtOnceMax) {
        const some = userIds.slice(first, first + usersAtOnceMax);
        const raw = await link.run(cancelTicketsOf, { keys: keysOf(place, mode), arguments: some });
        const ends = (raw as RawEntry[]).map((entry) => entryOf(mode, entry).end);
        if (ends.length === 0) continue;
        const results = await recordEnds(tx, ends, { outbox });
        afterCommit(tx, () => {
          onRecorded?.(ends.map((end, at) => ({ end, recorded: results[at] as Recorded })));
          onEnded(mode);
        });
      }
    }
  };
}
