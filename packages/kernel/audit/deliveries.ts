/** Whether published events reached a consumer, page by page: the outbox and the inbox are in two databases. */
import type { Queryable } from "../db/index.ts";

export interface PublishedEvent {
  readonly event_id: string;
  readonly subject: string;
  readonly event_type: string;
  /** The user in its payload, if there is one. */
  readonly user_id: string | null;
}

export interface PublishedPage {
  /** The last event of the previous page. */
  readonly after?: string | undefined;
  /** Events that were published within this time may still be on their way. */
  readonly graceMs: number;
  readonly limit: number;
}

const firstId = "00000000-0000-0000-0000-000000000000";

/** Ordered by id. */
export async function selectPublished(
  db: Queryable,
  { after = firstId, graceMs, limit }: PublishedPage,
): Promise<readonly PublishedEvent[]> {
  const { rows } = await db.query<PublishedEvent>(
    `select event_id, subject, event_type, payload ->> 'user_id' as user_id
       from outbox_events
      where event_id > $1 and status = 'PUBLISHED' and published_at < now() - $2::float8 * interval '1 millisecond'
      order by event_id limit $3`,
    [after, graceMs, limit],
  );
  return rows;
}

/**
 * Returns the events that the consumer has not marked as processed. Events older than its oldest mark do not count: their
 * marks were removed by age, or it did not consume yet.
 */
export async function selectUnprocessed(
  db: Queryable,
  consumer: string,
  eventIds: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await db.query<{ event_id: string }>(
    `select e.event_id from unnest($2::uuid[]) e(event_id)
      where (select p.event_id from processed_events p where p.consumer = $1 and p.event_id = e.event_id limit 1) is null
        and e.event_id > (select p.event_id from processed_events p where p.consumer = $1 order by p.event_id limit 1)`,
    [consumer, eventIds],
  );
  return rows.map(({ event_id }) => event_id);
}
