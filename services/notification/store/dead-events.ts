/** Reads one row of the kernel's inbox_dlq, in whatever state: the kernel's own list shows those that are dead now. */
import { type Db, utcText } from "@todoke/kernel/db";

export interface DeadEventWhole {
  readonly dlq_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly subject: string;
  readonly aggregate_key: string;
  readonly occurred_at: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
  readonly status: "DEAD" | "PENDING" | "PROCESSING" | "RESOLVED";
  readonly attempt_count: number;
  readonly last_error: string | null;
  readonly dead_at: string;
}

export async function selectDeadEvent(
  db: Db,
  { consumer, dlqId }: { readonly consumer: string; readonly dlqId: string },
): Promise<DeadEventWhole | undefined> {
  const { rows } = await db.query<DeadEventWhole>({
    name: "select dead event",
    text: `select dlq_id::text as dlq_id, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload,
                  status, attempt_count, last_error,
                  ${utcText("dead_at")} as dead_at
             from inbox_dlq where dlq_id = $1 and consumer = $2`,
    values: [dlqId, consumer],
  });
  return rows[0];
}
