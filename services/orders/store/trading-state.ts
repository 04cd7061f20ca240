/** The kill switch, for all instruments and for each. It is stored, so that a restart changes nothing. */

import { type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { TradingStateView } from "../routes/schemas.ts";

/** `halt`: nothing is sent to the broker. `cancel-only`: only cancels are. */
export const tradingModes = ["active", "halt", "cancel-only"] as const;
export type TradingMode = (typeof tradingModes)[number];

/** The scope of all instruments. */
export const allInstruments = "*";

export type TradingState = Readonly<Static<typeof TradingStateView>>;

const stateColumns = `scope, mode, reason, set_by, ${rfc3339Sql("set_at")} as set_at`;

/** Every scope that was ever set. A scope without a row is active. */
export async function selectTradingState(db: Queryable): Promise<TradingState[]> {
  const { rows } = await db.query<TradingState>({
    name: "select trading state",
    text: `select ${stateColumns} from trading_state order by scope`,
  });
  return rows;
}

export type NewTradingState = Omit<TradingState, "set_at">;

export interface LockedTradingState {
  readonly mode: TradingMode;
  /** Another caller who has set this scope since it was last active, if any. */
  readonly setByOther: string | null;
}

/** Locks the scope until the transaction ends, even if it has no row yet. */
export async function lockTradingState(
  tx: Tx,
  { scope, set_by }: Pick<NewTradingState, "scope" | "set_by">,
): Promise<LockedTradingState> {
  await tx.query(
    `select pg_advisory_xact_lock(hashtextextended('trading state ' || current_schema() || ' ' || $1, 0))`,
    [scope],
  );
  const { rows } = await tx.query<LockedTradingState>(
    `select coalesce((select mode from trading_state where scope = $1), 'active') as mode,
            (select a.set_by from trading_state_audit a
              where a.scope = $1 and a.set_by <> $2
                and a.audit_id > coalesce((select max(l.audit_id) from trading_state_audit l
                                            where l.scope = $1 and l.to_mode = 'active'), 0)
              order by a.audit_id desc limit 1) as "setByOther"`,
    [scope, set_by],
  );
  return rows[0] as LockedTradingState;
}

/** The same statement records who set it and why. */
export async function upsertTradingState(
  tx: Tx,
  { scope, mode, reason, set_by }: NewTradingState,
): Promise<TradingState> {
  const { rows } = await tx.query<TradingState>({
    name: "upsert trading state",
    text: `with before as materialized (select mode from trading_state where scope = $1 for update),
                insert_audit as (
                  insert into trading_state_audit (scope, from_mode, to_mode, reason, set_by)
                  values ($1, coalesce((select mode from before), 'active'), $2, $3, $4)
                )
           insert into trading_state (scope, mode, reason, set_by)
           select $1, $2, $3, $4 from (select count(*) from before) locked -- reads the row before it is changed
           on conflict (scope) do update set mode = excluded.mode, reason = excluded.reason, set_by = excluded.set_by,
                                             set_at = now()
           returning ${stateColumns}`,
    values: [scope, mode, reason, set_by],
  });
  return rows[0] as TradingState;
}
