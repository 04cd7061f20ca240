/** Positions and open exposure. Triggers of outbox_orders keep them; the sums of an instrument are spread over several rows. */

import type { Queryable, Tx } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { ExposureLimits } from "../instruments/index.ts";
import type { PositionView } from "../routes/positions.ts";
import type { CallerKey } from "./orders.ts";

/** Without the limits, which are settings. */
export type Position = Omit<Static<typeof PositionView>, keyof ExposureLimits>;

const sum = (column: string) => `trim_scale(sum(p.${column}))::text as ${column}`;
const positionColumns = `p.adapter, p.instrument, ${["position", "open_buy_qty", "open_sell_qty", "open_notional"].map(sum).join(", ")}`;

export interface PositionsPage {
  readonly after: Pick<Position, "adapter" | "instrument"> | undefined;
  readonly limit: number;
}

/** By broker and instrument. */
export async function selectPositions(db: Queryable, { after, limit }: PositionsPage): Promise<Position[]> {
  const { rows } = await db.query<Position>({
    name: "select positions",
    text: `select ${positionColumns} from positions p where (p.adapter, p.instrument) > ($1, $2)
            group by p.adapter, p.instrument order by p.adapter, p.instrument limit $3`,
    values: [after?.adapter ?? "", after?.instrument ?? "", limit],
  });
  return rows;
}

export interface ExposureScope {
  readonly adapter: string;
  readonly instruments: readonly string[];
}

/**
 * Until the transaction ends, no other one can accept orders for these instruments against their limits. Only accepting an order
 * raises the exposure; fills move it, and ends lower it.
 */
export async function lockExposure(tx: Tx, { adapter, instruments }: ExposureScope): Promise<void> {
  await tx.query({
    name: "lock exposure",
    text: `select pg_advisory_xact_lock(l.key)
             from (select distinct hashtextextended('exposure ' || current_schema() || ' ' || $1 || ' ' || i, 0) as key
                     from unnest($2::text[]) i order by 1) l`,
    values: [adapter, instruments],
  });
}

export async function selectExposure(
  db: Queryable,
  { adapter, instruments }: ExposureScope,
): Promise<ReadonlyMap<string, Position>> {
  const { rows } = await db.query<Position>({
    name: "select exposure",
    text: `select ${positionColumns} from positions p where p.adapter = $1 and p.instrument = any($2::text[])
            group by p.adapter, p.instrument`,
    values: [adapter, instruments],
  });
  return new Map(rows.map((row) => [row.instrument, row]));
}

/** Those of the keys that have an order. */
export async function selectUsedKeys(db: Queryable, keys: readonly CallerKey[]): Promise<readonly CallerKey[]> {
  const { rows } = await db.query<CallerKey>({
    name: "select used keys",
    text: `select o.caller, o.idempotency_key as "idempotencyKey"
             from unnest($1::text[], $2::text[]) as k(caller, key)
             cross join lateral (select o.caller, o.idempotency_key from outbox_orders o
                                  where o.caller = k.caller and o.idempotency_key = k.key limit 1) o`,
    values: [keys.map(({ caller }) => caller), keys.map(({ idempotencyKey }) => idempotencyKey)],
  });
  return rows;
}
