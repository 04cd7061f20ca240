/** Decides which occurrence of a schedule runs next, after a downtime or a pause. */
import type { Cron } from "./cron.ts";

/**
 * `all` runs every missed occurrence, one after the other; `latest` only the last of them; `none` skips occurrences that
 * are more than five minutes late.
 */
export type CatchUp = "all" | "latest" | "none";

const missedAfter = Temporal.Duration.from({ minutes: 5 });

export interface DueOccurrence {
  readonly nextRunAt: string;
  readonly now: string;
  readonly catchUp: CatchUp;
}

/** The occurrence to run now or, if all missed ones are skipped, the next one; undefined if there is none. */
export function nextOccurrence({ nextRunAt, now, catchUp }: DueOccurrence, cron: Cron): Temporal.Instant | undefined {
  const [next, present] = [Temporal.Instant.from(nextRunAt), Temporal.Instant.from(now)];
  if (catchUp === "latest") return latest(cron, next, present);
  const missed = present.subtract(missedAfter);
  if (catchUp === "all" || Temporal.Instant.compare(next, missed) >= 0) return next;
  return cron.next(missed);
}

/** Looks back twice as far each time until it finds an occurrence: a year of minutes may have been missed. */
function latest(cron: Cron, next: Temporal.Instant, present: Temporal.Instant): Temporal.Instant {
  for (let minutes = 1; ; minutes *= 2) {
    const from = present.subtract({ minutes });
    if (Temporal.Instant.compare(from, next) <= 0) return lastUpTo(cron, next, present);
    const found = cron.next(from);
    if (found && Temporal.Instant.compare(found, present) <= 0) return lastUpTo(cron, found, present);
  }
}

function lastUpTo(cron: Cron, first: Temporal.Instant, present: Temporal.Instant): Temporal.Instant {
  let last = first;
  for (;;) {
    const after = cron.next(last);
    if (!after || Temporal.Instant.compare(after, present) > 0) return last;
    last = after;
  }
}
