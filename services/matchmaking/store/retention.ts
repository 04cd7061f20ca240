/** Retention policies. An end is final when it is recorded, so only its age counts. */
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** Deleting a match deletes the ends of its tickets too, so they go together. */
export const endsRetention = (keepMs: number): readonly RetentionPolicy[] => [
  { table: "matches", finished: "true", since: "matched_at", keepMs },
  { table: "ticket_ends", finished: "match_id is null", since: "ended_at", keepMs },
  { table: "damaged_tickets", finished: "true", since: "ended_at", keepMs },
];
