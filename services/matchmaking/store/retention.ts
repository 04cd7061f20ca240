/** What is removed by age. An end is finished when it is written, so that age is all that counts. */
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** A match takes the ends of its tickets along: none of them is ever without the others. */
export const endsRetention = (keepMs: number): readonly RetentionPolicy[] => [
  { table: "matches", finished: "true", since: "matched_at", keepMs },
  { table: "ticket_ends", finished: "match_id is null", since: "ended_at", keepMs },
  { table: "damaged_tickets", finished: "true", since: "ended_at", keepMs },
];
