/** The table `console_samples`: the figures of each process for each minute. */
import { type Queryable, rfc3339Sql } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** One process in one minute. Null: this process cannot tell. */
export interface Sample {
  readonly requests: number;
  /** Responses with 5xx. */
  readonly errors: number;
  /** Of the requests, how many took at most each of these seconds; the last count has the slower ones. */
  readonly boundaries: readonly number[];
  readonly counts: readonly number[];
  readonly backlog: number | null;
  readonly oldest_age_s: number | null;
  readonly dead: number | null;
}

export interface StoredSample {
  readonly minute: string;
  readonly process: string;
  readonly sample: Sample;
}

/** The minute that has just ended, by the database's clock. */
export async function insertSample(db: Queryable, process: string, sample: Sample): Promise<void> {
  await db.query({
    name: "insert console sample",
    text: `insert into console_samples (minute, process, sample)
           values (date_trunc('minute', now()) - interval '1 minute', $1, $2) on conflict do nothing`,
    values: [process, JSON.stringify(sample)],
  });
}

// An hour of two hundred processes.
const samplesMax = 12_000;

/** The last hour, oldest first. */
export async function selectSamples(db: Queryable): Promise<StoredSample[]> {
  const { rows } = await db.query<StoredSample>({
    name: "select console samples",
    text: `select ${rfc3339Sql("minute")} as minute, process, sample from console_samples
            where minute > now() - interval '61 minutes' order by minute, process limit ${samplesMax}`,
  });
  return rows;
}

const hourMs = 60 * 60 * 1_000;

export const oldSamples: RetentionPolicy = {
  table: "console_samples",
  finished: "true",
  since: "minute",
  keepMs: 25 * hourMs,
};
