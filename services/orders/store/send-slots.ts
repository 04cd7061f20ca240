/** The send rate of a broker, shared by all senders. */
import { type Db, runStatement } from "@todoke/kernel/db";

export interface SlotRequest {
  readonly adapter: string;
  readonly perSecond: number;
  /** A slot that is further away is not reserved. */
  readonly waitMaxMs: number;
}

/** Reserves the next slot and returns the milliseconds until it; undefined if none is near enough. */
export async function reserveSendSlot(
  db: Db,
  { adapter, perSecond, waitMaxMs }: SlotRequest,
): Promise<number | undefined> {
  const { rows } = await runStatement<{ wait_ms: number }>(db, {
    name: "reserve send slot",
    text: `
insert into broker_turns as t (adapter, next_at) values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
on conflict (adapter) do update
   set next_at = greatest(t.next_at, clock_timestamp()) + $2::float8 * interval '1 millisecond'
 where t.next_at <= clock_timestamp() + $3::float8 * interval '1 millisecond'
returning (extract(epoch from next_at - clock_timestamp()) * 1000)::float8 - $2::float8 as wait_ms`,
    values: [adapter, 1_000 / perSecond, waitMaxMs],
  });
  const [slot] = rows;
  return slot && Math.max(0, slot.wait_ms);
}
